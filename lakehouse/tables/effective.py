"""`meta.effective`: which schema version of a day readers get; derived from `meta.decisions`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.errors import InvariantError
from lakehouse.model.partition import Partition
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decision, Decisions, Recorded
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.split import partition_of

TABLE = "meta.effective"
KIND = "effective"
WHOLE_TABLE = partition_of(())

Day = tuple[str, str, date]
"""Dataset, source and business day."""


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective schema version (and fix) of a day of one dataset and source."""

    dataset: str
    source: str
    dt: date
    schema_version: int
    fix_id: str | None = None


def set_first_effective(
    committer: Committer, decisions: Decisions, dataset: str, partitions: Sequence[Partition]
) -> list[Effective]:
    """Make each partition's version effective where its day has none yet; returns the pointers that were set."""
    wanted = {(one.source, one.dt): Effective(dataset, one.source, one.dt, one.schema_version) for one in partitions}
    with committer.locks.hold(TABLE):
        known = _days_with_pointer(committer, dataset, {source for source, _ in wanted})
        new = [one for day, one in wanted.items() if day not in known]
        if new:
            decisions.record_all([_decision(one, None, "", "system") for one in new])
            committer.add(TABLE, _frame(committer, new))
    return new


def set_effective(
    committer: Committer,
    decisions: Decisions,
    pointers: Sequence[Effective],
    *,
    reason: str,
    who: str,
    undoes: Mapping[Day, str] | None = None,
) -> list[Effective]:
    """Move days to other versions or fixes: decided first, then in effect. Returns the pointers that moved.

    The decision names the one it follows, so a pointer may move away and back, and the one it `undoes`. What was
    decided already is not decided twice; it only takes effect, where a run before this one died in between.
    """
    wanted = {_day(one): one for one in pointers}
    with committer.locks.hold(TABLE):
        known = current(committer)
        last = {_day(_pointer(one)): one for one in decisions.all(KIND)}
        new = [one for day, one in wanted.items() if day not in last or _pointer(last[day]) != one]
        late = [one for day, one in wanted.items() if known.get(day) != one]
        follows = {day: one.decision_id for day, one in last.items()}
        decisions.record_all(
            [_decision(one, follows.get(_day(one)), reason, who, (undoes or {}).get(_day(one))) for one in new]
        )
        if late:
            _replace(committer, known | {_day(one): one for one in late})
    return [one for one in wanted.values() if one in new or one in late]


def current(committer: Committer) -> dict[Day, Effective]:
    """All effective pointers by (dataset, source, dt)."""
    found = (Effective(**row) for row in committer.scan(TABLE).to_pylist())
    return {_day(one): one for one in found}


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a day's pointer: when, why and by whom.

    `follows` is the id of the move before it, `undoes` of the one that it takes back.
    """

    decision_id: str
    decided_at: datetime
    pointer: Effective
    reason: str
    who: str
    follows: str | None
    undoes: str | None = None


def read_moves(decisions: Decisions, dataset: str, source: str) -> dict[date, list[Move]]:
    """All moves of a source's days, oldest first."""
    found: dict[date, list[Move]] = {}
    for one in decisions.all(KIND):
        pointer = _pointer(one)
        if (pointer.dataset, pointer.source) == (dataset, source):
            said, names = one.decision, one.decision.payload
            move = Move(
                one.decision_id,
                one.decided_at,
                pointer,
                said.reason,
                said.who,
                names.get("follows"),
                names.get("undoes"),
            )
            found.setdefault(pointer.dt, []).append(move)
    return found


def rebuild_effective(committer: Committer, decisions: Decisions) -> int:
    """Derive `meta.effective` anew from `meta.decisions`; returns the number of pointers."""
    with committer.locks.hold(TABLE):
        pointers = decided_pointers(decisions)
        _replace(committer, pointers)
    return len(pointers)


def decided_pointers(decisions: Decisions) -> dict[Day, Effective]:
    """The pointers as `meta.decisions` has them, by (dataset, source, dt)."""
    return {_day(one): one for one in map(_pointer, decisions.all(KIND))}


def _replace(committer: Committer, pointers: Mapping[Day, Effective]) -> None:
    committer.replace(TABLE, _frame(committer, pointers.values()), [WHOLE_TABLE])


def _frame(committer: Committer, pointers: Iterable[Effective]) -> pa.Table:
    return to_arrow((asdict(one) for one in pointers), committer.catalog.table_schema(TABLE))


def _days_with_pointer(committer: Committer, dataset: str, sources: Collection[str]) -> set[tuple[str, date]]:
    rows = committer.scan(TABLE, columns=["dataset", "source", "dt"])
    among = pc.is_in(rows.column("source"), pa.array(sorted(sources), pa.string()))
    rows = rows.filter(pc.and_(pc.equal(rows.column("dataset"), dataset), among))
    return set(zip(rows.column("source").to_pylist(), rows.column("dt").to_pylist(), strict=True))


def _day(pointer: Effective) -> Day:
    return pointer.dataset, pointer.source, pointer.dt


def _decision(pointer: Effective, follows: str | None, reason: str, who: str, undoes: str | None = None) -> Decision:
    payload = {"fix_id": pointer.fix_id, "follows": follows} | ({"undoes": undoes} if undoes else {})
    return Decision(
        KIND, payload, pointer.dataset, pointer.source, pointer.dt, pointer.schema_version, reason=reason, who=who
    )


def _pointer(recorded: Recorded) -> Effective:
    one = recorded.decision
    if one.dataset is None or one.source is None or one.dt is None or one.schema_version is None:
        raise InvariantError(f"decision {recorded.decision_id} makes something effective without saying what")
    return Effective(one.dataset, one.source, one.dt, one.schema_version, one.payload.get("fix_id"))
