"""Completion marks: how far the raw layer of a day has come, decided before readers can rely on it.

A mark names the one it follows, so a day may be completed, reopened and completed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakehouse.lake import Lake
from lakehouse.ledger.partitions import ENDED_STATES
from lakehouse.model.partition import Partition, PartitionState, SourceDay
from lakehouse.tables.decisions import Decision, Recorded

COMPLETION, REOPENING = "completion", "reopening"


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest mark of a day: its state, and the rows that the raw tables had by dataset."""

    decision_id: str
    state: PartitionState
    rows: Mapping[str, int]


def newest_marks(lake: Lake, sources: Collection[str] | None = None) -> dict[SourceDay, Mark]:
    """The newest mark of every day, of some sources where given."""
    found: dict[SourceDay, Mark] = {}
    for one in lake.decisions.all(COMPLETION, REOPENING):
        source, dt = one.decision.source, one.decision.dt
        if source and dt and (sources is None or source in sources):
            found[SourceDay(source, dt)] = _mark(one)
    return found


def next_mark(
    known: Mark | None, partition: Partition, state: PartitionState, rows: Mapping[str, int]
) -> Decision | None:
    """The decision that a day's state asks for; None where the newest mark says it already."""
    if state not in ENDED_STATES:
        # Rows that the mark does not know reopen a day by themselves.
        if state_by_mark(known, rows) not in ENDED_STATES:
            return None
        kind, reason, state = REOPENING, "due tasks of the day are not ended", PartitionState.OPEN
    elif state_by_mark(known, rows) is state:
        return None
    else:
        kind, reason = COMPLETION, "all due tasks of the day have ended and their uploads are committed"
    return Decision(
        kind=kind,
        payload={"state": state.value, "follows": known.decision_id if known else None, **dict(sorted(rows.items()))},
        dataset="fetches",
        source=partition.source,
        dt=partition.dt,
        schema_version=partition.schema_version,
        reason=reason,
    )


def state_by_mark(mark: Mark | None, rows: Mapping[str, int]) -> PartitionState:
    """What the newest mark says of a day whose raw tables have these rows."""
    if mark is None or mark.state not in ENDED_STATES or dict(mark.rows) != dict(rows):
        return PartitionState.OPEN
    return mark.state


def _mark(one: Recorded) -> Mark:
    payload = dict(one.decision.payload)
    state = PartitionState(payload.pop("state"))
    payload.pop("follows", None)
    return Mark(one.decision_id, state, payload)
