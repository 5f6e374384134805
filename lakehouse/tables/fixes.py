"""Fixes: corrections of published partitions, each with its reason, as they stand in `meta.decisions`.

A fix is recorded before it takes effect, with the files that its partitions held (`fix`); then with the files that they
hold and the rows that changed (`fix_applied`). Every `fix_rollback` and `fix_redo` is recorded before it takes effect
too. Files that a fix names are kept by garbage collection. Not here: making rows anew (`materialize`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from lakehouse.errors import ConflictError, InvariantError, UnknownNameError
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.tables.committer import Commit, Committer
from lakehouse.tables.content import content_hash
from lakehouse.tables.decisions import Decision, Decisions, Recorded
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.registry import versions_of
from lakehouse.tables.scan import read_file
from lakehouse.tables.split import key_of
from lakehouse.tables.writer import describe_file

FIX, APPLIED, ROLLBACK, REDO = "fix", "fix_applied", "fix_rollback", "fix_redo"
KINDS = (FIX, APPLIED, ROLLBACK, REDO)
SHORTEST_ID = 6


class Code(StrEnum):
    """What kind of error a fix corrects."""

    BUG = "bug"
    TEMPLATE = "template"
    SOURCE_ERROR = "source_error"


class Status(StrEnum):
    """Where a fix stands; an unfinished one was recorded and not seen to its end."""

    UNFINISHED = "unfinished"
    APPLIED = "applied"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a partition of one table holds: its data files by path, rows, and the order-free content hash."""

    table: str
    schema_version: int
    files: tuple[str, ...]
    rows: int
    checksum: str


States = Mapping[str, PartitionState]
"""What the tables of a fix hold, by table."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What was effective before a fix: schema version and fix, None where nothing was."""

    schema_version: int
    fix_id: str | None


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix of one source day of a dataset.

    `template` is the template the rows before came from (None: generic extraction). `raw` names the raw partitions and
    their content when the fix was applied or last moved. `changes` holds per table the numbers of rows added, removed
    and changed, and of changes by column. `moves` counts rollbacks and redos. `given` is the content hash of the rows
    where a file gave them. A command over several `days` is one unit: its later days name the fix of its first as
    `head`.
    """

    fix_id: str
    dataset: str
    partition: Partition
    code: str
    reason: str
    who: str
    decided_at: datetime
    pointer: Pointer | None
    template: str | None
    before: Mapping[str, PartitionState]
    after: Mapping[str, PartitionState] | None = None
    changes: Mapping[str, Any] | None = None
    status: Status = Status.UNFINISHED
    moves: int = 0
    raw: tuple[str, ...] = ()
    given: str | None = None
    days: tuple[date, ...] = ()
    head: str | None = None

    @property
    def unit(self) -> str:
        """The id that all days of one command share."""
        return self.head or self.fix_id

    @property
    def day(self) -> SourceDay:
        """The source day it corrects."""
        return self.partition.day

    @property
    def structural(self) -> bool:
        """Whether it moved the day to another schema version."""
        return self.pointer is not None and self.pointer.schema_version != self.partition.schema_version


def read_state(committer: Committer, table: str, partition: Partition) -> PartitionState:
    """What a partition holds now."""
    frame = committer.scan(table, [partition])
    paths = tuple(sorted(one.path for one in committer.files(table, partition)))
    return PartitionState(table, partition.schema_version, paths, frame.num_rows, content_hash(frame))


def read_rows(committer: Committer, state: PartitionState, day: SourceDay) -> pa.Table:
    """The rows of a state, also where no table snapshot needs its files any more.

    Raises UnknownNameError for a file that is gone.
    """
    table, specs = committer.table(state.table), versions_of(committer.catalog, state.table)
    key = key_of(Partition(day.source, day.dt, state.schema_version), specs[-1])
    columns = [one.name for one in table.schema().fields]
    frames = []
    for path in state.files:
        try:
            frames.append(read_file(table, specs, describe_file(table, path, key), columns))
        except FileNotFoundError:
            raise UnknownNameError(
                f"cannot read what {state.table} of {day.key} held: {path} is gone; somebody removed it by hand"
            ) from None
    return pa.concat_tables(frames, promote_options="default") if frames else to_arrow([], specs[-1])


def bring_back(committer: Committer, state: PartitionState, day: SourceDay) -> Commit:
    """Make a partition hold what it held: copies of its files, or nothing. One table snapshot; none where it does."""
    partition = Partition(day.source, day.dt, state.schema_version)
    if state.files:
        return committer.restore(state.table, partition, state.files)
    empty = to_arrow([], committer.catalog.table_schema(state.table, None))
    return committer.replace(state.table, empty, [partition])


def record_fix(decisions: Decisions, fix: Fix, *, follows: str = "") -> Fix:
    """Record a fix before it takes effect; gives it with its id. `follows` tells it from an equal one before it."""
    payload = {
        "code": fix.code,
        "pointer": asdict(fix.pointer) if fix.pointer else None,
        "template": fix.template,
        "before": {table: asdict(state) for table, state in fix.before.items()},
        "given": fix.given,
        "head": fix.head,
        "follows": follows,
        "days": [one.isoformat() for one in fix.days],
    }
    part = fix.partition
    decision = Decision(
        FIX, payload, fix.dataset, part.source, part.dt, part.schema_version, reason=fix.reason, who=fix.who
    )
    return replace(fix, fix_id=decisions.record_all([decision])[0])


def record_applied(
    decisions: Decisions, fix: Fix, after: Mapping[str, PartitionState], changes: Any, *, raw: Sequence[str]
) -> None:
    """Record what a fix led to; `raw` is what the raw partitions hold."""
    payload = {
        "fix": fix.fix_id,
        "after": {table: asdict(state) for table, state in after.items()},
        "changes": {table: asdict(one) for table, one in changes.items()},
        "raw": list(raw),
    }
    _record(decisions, APPLIED, fix, payload)


def record_move(decisions: Decisions, fix: Fix, kind: str, *, raw: Sequence[str], reason: str, who: str) -> None:
    """Record that a fix is rolled back or redone, before it is; `raw` is what the raw partitions hold."""
    _record(decisions, kind, fix, {"fix": fix.fix_id, "move": fix.moves + 1, "raw": list(raw)}, reason=reason, who=who)


def _record(
    decisions: Decisions, kind: str, fix: Fix, payload: dict[str, Any], *, reason: str = "", who: str = "system"
) -> None:
    part = fix.partition
    decisions.record_all(
        [Decision(kind, payload, fix.dataset, part.source, part.dt, part.schema_version, reason=reason, who=who)]
    )


def all_fixes(decisions: Decisions) -> list[Fix]:
    """All fixes with their status, oldest first."""
    fixes: dict[str, Fix] = {}
    for one in decisions.all(*KINDS):
        if one.decision.kind == FIX:
            fixes[one.decision_id] = _first(one)
        else:
            fix_id = one.decision.payload["fix"]
            fixes[fix_id] = _moved(fixes[fix_id], one)
    return list(fixes.values())


def find_fix(fixes: Sequence[Fix], fix_id: str) -> Fix:
    """The fix with this id, or the only one whose id starts so; raises UnknownNameError."""
    found = [
        fix for fix in fixes if fix.fix_id == fix_id or (len(fix_id) >= SHORTEST_ID and fix.fix_id.startswith(fix_id))
    ]
    if len(found) != 1:
        what = "no fix" if not found else f"{len(found)} fixes"
        raise UnknownNameError(f"{fix_id!r} names {what}; `lakehouse fix list` shows them with their ids")
    return found[0]


def led_to(fix: Fix) -> States:
    """What the partitions held after the fix; raises ConflictError for one that was never seen to its end."""
    if fix.after is None:
        raise ConflictError(
            f"fix {fix.fix_id[:8]} of {fix.day.key} was begun and not finished; give the same `fix apply` again first"
        )
    return fix.after


def days_of(fixes: Sequence[Fix], fix: Fix) -> list[Fix]:
    """The fixes of all days of the command that a fix comes from."""
    return [one for one in fixes if one.unit == fix.unit]


def check_newest(fixes: Sequence[Fix], fix: Fix, what: str) -> None:
    """Raise ConflictError where a later fix of the same day stands in the way."""
    standing = standing_after(fixes, fix)
    if standing:
        raise ConflictError(
            f"cannot {what} fix {fix.fix_id[:8]} of {fix.day.key}: fix {standing[-1].fix_id[:8]} came after it; "
            "roll that one back first"
        )


def standing_after(fixes: Sequence[Fix], fix: Fix) -> list[Fix]:
    """The fixes of the same day that came later and were not rolled back."""
    later = [one for one in fixes[fixes.index(fix) + 1 :] if (one.dataset, one.day) == (fix.dataset, fix.day)]
    return [one for one in later if one.status is not Status.ROLLED_BACK]


def _first(recorded: Recorded) -> Fix:
    one = recorded.decision
    if one.dataset is None or one.source is None or one.dt is None or one.schema_version is None:
        raise InvariantError(f"decision {recorded.decision_id} is a fix without a partition")
    pointer = one.payload["pointer"]
    return Fix(
        fix_id=recorded.decision_id,
        dataset=one.dataset,
        partition=Partition(one.source, one.dt, one.schema_version),
        code=one.payload["code"],
        reason=one.reason,
        who=one.who,
        decided_at=recorded.decided_at,
        pointer=Pointer(**pointer) if pointer else None,
        template=one.payload["template"],
        before=_states(one.payload["before"]),
        given=one.payload.get("given"),
        head=one.payload.get("head"),
        days=tuple(map(date.fromisoformat, one.payload.get("days", []))),
    )


def _moved(fix: Fix, recorded: Recorded) -> Fix:
    kind, payload = recorded.decision.kind, recorded.decision.payload
    if kind == APPLIED:
        after = _states(payload["after"])
        raw = tuple(payload.get("raw", []))
        return replace(fix, status=Status.APPLIED, after=after, changes=payload["changes"], raw=raw)
    status = Status.ROLLED_BACK if kind == ROLLBACK else Status.APPLIED
    return replace(fix, status=status, moves=fix.moves + 1, raw=tuple(payload["raw"]))


def _states(found: Mapping[str, Any]) -> dict[str, PartitionState]:
    return {table: PartitionState(**{**state, "files": tuple(state["files"])}) for table, state in found.items()}
