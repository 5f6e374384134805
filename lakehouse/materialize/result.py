"""What materializing one source and day gave: all that an asset, the command line or a test shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.model.partition import Partition, PartitionState

PREVIEW_ROWS = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table as it is registered; `type` is the Iceberg type's text."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The state of one partition after a run.

    `table` is the layer's main table (`raw.fetches`, `clean.<dataset>`, `feature.<dataset>`) and `row_count` the rows
    of the partition in it; `rows` counts fetches by outcome (clean, feature) or tasks by state (raw).
    `changed` says whether this run committed anything for the partition, in any table of the layer; `snapshot_id` is
    the table snapshot of `table` that this run wrote, else the one that holds. `tables` maps every other table of the
    layer to its rows. `error` is the message of what failed; then nothing of this partition was replaced.
    `elapsed` is the run's seconds up to this result; days of one run share their commits.
    """

    table: str
    partition: Partition
    state: PartitionState
    changed: bool
    snapshot_id: int | None
    rows: Mapping[str, int]
    columns: tuple[Column, ...] = ()
    uri: str = ""
    preview: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    row_count: int = 0
    tables: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    elapsed: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the day was materialized."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of a run, as told to whoever watches: `done` of `total` (None where unknown) `unit`s of `what`."""

    layer: str
    what: str
    done: int = 0
    total: int | None = None
    unit: str = ""


ProgressSink = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """For callers who do not watch."""
