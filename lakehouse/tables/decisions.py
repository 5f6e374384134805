"""`meta.decisions`: what people and the system decided, appended before it takes effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from lakehouse.clock import Clock
from lakehouse.tables.committer import Committer


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision to record. Its id depends on everything here, so recording it again adds nothing.

    A decision that may recur (a pointer moved away and back) names in `payload` what it follows.
    """

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    source: str | None = None
    dt: date | None = None
    schema_version: int | None = None
    reason: str = ""
    who: str = "system"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision as it stands in the table."""

    decision_id: str
    decided_at: datetime
    decision: Decision


class Decisions:
    """Appends to and reads `meta.decisions`."""

    def __init__(self, committer: Committer, clock: Clock) -> None:
        self.committer = committer
        self.clock = clock

    def record(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        dataset: str | None = None,
        source: str | None = None,
        dt: date | None = None,
        schema_version: int | None = None,
        reason: str = "",
        who: str = "system",
    ) -> str:
        """Record one decision and return its id."""
        raise NotImplementedError

    def record_all(self, decisions: Sequence[Decision]) -> list[str]:
        """Record many decisions in one commit and return their ids."""
        raise NotImplementedError

    def all(self, kind: str | None = None) -> list[Recorded]:
        """All decisions (of one kind), oldest first."""
        raise NotImplementedError
