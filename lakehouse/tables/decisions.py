"""`meta.decisions`: what people and the system decided, appended before it takes effect."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.clock import Clock
from lakehouse.specs.types import Scalar
from lakehouse.tables.committer import Committer
from lakehouse.tables.fit import Misfit, make_fit
from lakehouse.tables.normalize import mismatch, to_arrow

TABLE = "meta.decisions"


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
        """Record one decision and return its id; a decision that stands already is left as it is."""
        return self.record_all([Decision(kind, payload, dataset, source, dt, schema_version, reason, who)])[0]

    def record_all(self, decisions: Sequence[Decision]) -> list[str]:
        """Record many decisions in one commit and return their ids."""
        if not decisions:
            return []
        now = self.clock.now_utc()
        spec = self.committer.catalog.table_schema(TABLE)
        try:
            rows = {decision_id(one): _row(one, now) for one in decisions}
        except Misfit as misfit:
            raise mismatch(spec, "payload", misfit.expected, misfit.found) from None
        frame = to_arrow(rows.values(), spec)
        self.committer.append(TABLE, frame, id_column="decision_id")
        return [decision_id(one) for one in decisions]

    def all(self, *kinds: str) -> list[Recorded]:
        """All decisions, of some kinds where given, oldest first."""
        rows = self.committer.scan(TABLE)
        if kinds:
            rows = rows.filter(pc.is_in(rows.column("kind"), pa.array(kinds, pa.string())))
        rows = rows.sort_by([("decided_at", "ascending"), ("decision_id", "ascending")])
        return [_recorded(row) for row in rows.to_pylist()]


def decision_id(decision: Decision) -> str:
    """32 hex characters made from all that is decided, but not from when."""
    parts = [
        decision.kind,
        _payload(decision),
        decision.dataset,
        decision.source,
        None if decision.dt is None else decision.dt.isoformat(),
        decision.schema_version,
        decision.reason,
        decision.who,
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:32]


def _payload(decision: Decision) -> str:
    text: str = make_fit(Scalar("json"))(dict(decision.payload))
    return text


def _row(decision: Decision, now: datetime) -> dict[str, Any]:
    return {
        "decision_id": decision_id(decision),
        "kind": decision.kind,
        "dataset": decision.dataset,
        "source": decision.source,
        "dt": decision.dt,
        "schema_version": decision.schema_version,
        "reason": decision.reason or None,
        "who": decision.who,
        "payload": _payload(decision),
        "decided_at": now,
    }


def _recorded(row: Mapping[str, Any]) -> Recorded:
    decision = Decision(
        row["kind"],
        json.loads(row["payload"]),
        row["dataset"],
        row["source"],
        row["dt"],
        row["schema_version"],
        row["reason"] or "",
        row["who"],
    )
    return Recorded(row["decision_id"], row["decided_at"], decision)
