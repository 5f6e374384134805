"""What collecting one day of one source needs, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from lakehouse.clock import Clock
from lakehouse.ledger.ledger import Ledger
from lakehouse.snapshots.objects import ObjectStore
from lakehouse.snapshots.spool import Spool


@dataclass(frozen=True, slots=True)
class CollectorDeps:
    """What a collector works with. `patience_s`: how long it waits for a task that may only be tried later."""

    clock: Clock
    ledger: Ledger
    store: ObjectStore
    spool: Spool
    worker_id: str
    max_body_bytes: int = 20_000_000
    browser_path: str | None = None
    patience_s: float = 300.0


@dataclass(slots=True)
class CollectReport:
    """What became of one day of one source.

    `fetched`, `failed` and `limited` count exchanges (retries included) and sum to all of them. `known` counts list
    entries that were not fetched because this source already has them. `waiting` counts tasks left for a later run.
    `reason` says why nothing was due. `batches` are the ids uploaded in this run, left-overs of earlier ones included.
    """

    source: str
    dt: date
    worker_id: str
    due: tuple[str, ...] = ()
    reason: str | None = None
    enqueued: int = 0
    fetched: int = 0
    failed: int = 0
    limited: int = 0
    retried: int = 0
    entries: int = 0
    known: int = 0
    waiting: int = 0
    ended: bool = False
    batches: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)


Progress = Callable[[CollectReport], None]
