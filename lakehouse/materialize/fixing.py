"""Fixes of published days: made anew with a reason, rolled back and redone by copies, features following.

A command that died is finished by the same command. Not here: how a fix is recorded (`tables.fixes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakehouse.errors import ConflictError, DataError
from lakehouse.lake import Lake
from lakehouse.materialize.clean import OUTCOMES, REJECTS, clean_partition_frames, materialize_clean
from lakehouse.materialize.days import checked_days, dataset_of, record_partition
from lakehouse.materialize.feature import DAILY, FEATURES, feature_partition, materialize_feature, refresh_current
from lakehouse.materialize.holds import raw_marks
from lakehouse.materialize.index import RunNotes, record_commit
from lakehouse.materialize.result import ProgressSink, failed_days, ignore_progress
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.tables.content import content_hash
from lakehouse.tables.differences import RowCounts, RowDiff, compare_rows
from lakehouse.tables.effective import Effective, decided_pointers, read_moves, set_effective
from lakehouse.tables.fixes import (
    REDO,
    ROLLBACK,
    Code,
    Fix,
    PartitionState,
    Pointer,
    Status,
    all_fixes,
    bring_back,
    check_newest,
    find_fix,
    read_rows,
    read_state,
    record_applied,
    record_fix,
    record_move,
)

LOCK = "meta.fixes"
GENERIC = "generic@"
States = Mapping[str, PartitionState]


def apply_fix(
    lake: Lake, day: SourceDay, *, code: Code, reason: str, who: str, progress: ProgressSink | None = None
) -> Fix:
    """Make a day's clean and feature partitions anew with the catalog of now, and record why and what changed.

    Readers get the new rows in one step a table. Raises DataError where the day cannot be made, with everything as
    it was; UnknownNameError and ConfigError for a day that cannot be.
    """
    say = progress or ignore_progress
    [day] = checked_days(lake, [day])
    with _alone(lake):
        fix = _begun(lake, day, code, reason) or _begin(lake, day, code=code, reason=reason, who=who)
        say(f"fix {fix.fix_id[:8]} of {day.key}: making its partitions anew")
        # The fix stands in the decisions already, so no earlier rollback holds the day any more.
        failed = failed_days(materialize_clean(lake, [day], say)) or failed_days(materialize_feature(lake, [day], say))
        if failed:
            raise DataError(f"fix {fix.fix_id[:8]} of {day.key} was not applied: {failed[day]}")
        if fix.after is None:
            after = _read_states(lake, day, fix.partition)
            changes = {table: _changes(lake, day, fix.before[table], after[table]) for table in after}
            record_applied(lake.decisions, fix, after, changes)
        target = Effective(fix.dataset, day.source, day.dt, fix.partition.schema_version, fix.fix_id)
        _point(lake, target, reason=reason, who=who)
        return find_fix(all_fixes(lake.decisions), fix.fix_id)


def roll_back(
    lake: Lake, fix_id: str, *, reason: str, who: str, rerun: bool = False, progress: ProgressSink | None = None
) -> Fix:
    """Bring back what the fixed partitions held before, by copies; other partitions and later commits stay.

    Where a partition got rows after the fix that is refused with ConflictError; `rerun` then makes the day anew with
    the template of before. A structural fix only gives readers the earlier version back.
    """
    say = progress or ignore_progress
    with _alone(lake):
        fixes = all_fixes(lake.decisions)
        fix = find_fix(fixes, fix_id)
        check_newest(fixes, fix, "roll back")
        led_to(fix)
        if not rerun or fix.structural:
            _check_unmoved(lake, fix, "roll back", way_out="`--rerun` makes the day anew with the template of before")
        if fix.status is not Status.ROLLED_BACK or (rerun and fix.raw):
            raw = () if rerun else raw_marks(lake, fix.day)
            record_move(lake.decisions, fix, ROLLBACK, raw=raw, reason=reason, who=who)
        if rerun and not fix.structural:
            failed = failed_days(materialize_clean(lake, [fix.day], say))
            failed = failed or failed_days(materialize_feature(lake, [fix.day], say))
            if failed:
                raise DataError(f"fix {fix.fix_id[:8]} of {fix.day.key} is not rolled back: {failed[fix.day]}")
        else:
            say(f"fix {fix.fix_id[:8]} of {fix.day.key}: bringing back what was there")
            _bring_all_back(lake, fix, fix.before)
        pointer = fix.pointer or Pointer(fix.partition.schema_version, None)
        target = Effective(fix.dataset, fix.day.source, fix.day.dt, pointer.schema_version, pointer.fix_id)
        _point(lake, target, reason=reason, who=who)
        return find_fix(all_fixes(lake.decisions), fix.fix_id)


def redo(lake: Lake, fix_id: str, *, reason: str, who: str, progress: ProgressSink | None = None) -> Fix:
    """Apply a rolled back fix again, by copies of the files it led to. Raises ConflictError where rows came after."""
    say = progress or ignore_progress
    with _alone(lake):
        fixes = all_fixes(lake.decisions)
        fix = find_fix(fixes, fix_id)
        check_newest(fixes, fix, "redo")
        _check_unmoved(lake, fix, "redo", way_out="apply a new fix instead")
        if fix.status is Status.ROLLED_BACK:
            record_move(lake.decisions, fix, REDO, raw=raw_marks(lake, fix.day), reason=reason, who=who)
        say(f"fix {fix.fix_id[:8]} of {fix.day.key}: bringing back what it led to")
        _bring_all_back(lake, fix, led_to(fix))
        day, version = fix.day, fix.partition.schema_version
        target = Effective(fix.dataset, day.source, day.dt, version, fix.fix_id)
        _point(lake, target, reason=reason, who=who)
        return find_fix(all_fixes(lake.decisions), fix.fix_id)


def diff_fix(lake: Lake, fix: Fix) -> dict[str, RowDiff]:
    """The rows that a fix added, removed and changed, by table; whatever became of it since."""
    return {
        table: compare_rows(
            table, read_rows(lake.committer, fix.before[table], fix.day), read_rows(lake.committer, after, fix.day)
        )
        for table, after in led_to(fix).items()
    }


@contextmanager
def _alone(lake: Lake) -> Iterator[None]:
    """One fix at a time: each reads what is there before it moves anything."""
    with lake.committer.locks.hold(LOCK):
        yield


def _begun(lake: Lake, day: SourceDay, code: Code, reason: str) -> Fix | None:
    """The fix that the same command began, or finished where it would change nothing now."""
    wanted = (dataset_of(lake, day), record_partition(lake, day))
    fixes = [fix for fix in all_fixes(lake.decisions) if (fix.dataset, fix.partition) == wanted]
    if not fixes or fixes[-1].status is Status.ROLLED_BACK:
        return None
    last = fixes[-1]
    moves = read_moves(lake.decisions, last.dataset, day.source).get(day.dt, [])
    finished = last.status is Status.APPLIED and last.fix_id in {move.pointer.fix_id for move in moves}
    if (last.code, last.reason) == (code, reason):
        return last if not finished or _leads_there(lake, last) else None
    if finished:
        return None
    raise ConflictError(
        f"fix {last.fix_id[:8]} of {day.key} was begun and not finished; finish it first with its own words: "
        f"--code {last.code} --reason {last.reason!r}"
    )


def _leads_there(lake: Lake, fix: Fix) -> bool:
    """Whether the day, made anew with the catalog of now, gets the rows that the fix led to."""
    frames = clean_partition_frames(lake, fix.day)
    after = led_to(fix)
    return all(
        (frame.num_rows, content_hash(frame)) == (after[table].rows, after[table].checksum)
        for table, frame in frames.items()
    )


def _begin(lake: Lake, day: SourceDay, *, code: Code, reason: str, who: str) -> Fix:
    dataset, partition = dataset_of(lake, day), record_partition(lake, day)
    pointer = decided_pointers(lake.decisions).get((dataset, day.source, day.dt))
    before = _read_states(lake, day, partition)
    if not any(state.rows for state in before.values()) and pointer is None:
        raise DataError(f"{day.key} has no clean rows yet, so there is nothing to fix; materialize it instead")
    fix = Fix(
        fix_id="",
        dataset=dataset,
        partition=partition,
        code=code.value,
        reason=reason,
        who=who,
        decided_at=lake.clock.now_utc(),
        pointer=Pointer(pointer.schema_version, pointer.fix_id) if pointer else None,
        template=_template_before(lake, dataset, partition),
        before=before,
    )
    return record_fix(lake.decisions, fix)


def _template_before(lake: Lake, dataset: str, partition: Partition) -> str | None:
    table = lake.catalog.schema(dataset, None).table
    names = Counter(lake.committer.scan(table, [partition], ["template"]).column("template").to_pylist())
    if not names:
        return lake.catalog.source(partition.source).template
    name = names.most_common(1)[0][0]
    return None if name is None or name.startswith(GENERIC) else str(name)


def _tables(lake: Lake, day: SourceDay, partition: Partition) -> dict[str, Partition]:
    """The partitions of a day that a fix moves together, in the order in which they are brought back."""
    record = lake.catalog.schema(dataset_of(lake, day), None).table
    found = {REJECTS: partition, OUTCOMES: partition, record: partition}
    features = (FEATURES, DAILY) if dataset_of(lake, day) == "articles" else (DAILY,)
    return found | {table: feature_partition(lake, table, day) for table in features}


def _read_states(lake: Lake, day: SourceDay, partition: Partition) -> dict[str, PartitionState]:
    return {table: read_state(lake.committer, table, where) for table, where in _tables(lake, day, partition).items()}


def _changes(lake: Lake, day: SourceDay, before: PartitionState, after: PartitionState) -> RowCounts:
    if before.checksum == after.checksum and before.rows == after.rows:
        return RowCounts(0, 0, 0)
    old, new = (read_rows(lake.committer, state, day) for state in (before, after))
    return compare_rows(before.table, old, new).counts()


def led_to(fix: Fix) -> States:
    """What the partitions held after the fix; raises ConflictError for one that was never seen to its end."""
    if fix.after is None:
        raise ConflictError(
            f"fix {fix.fix_id[:8]} of {fix.day.key} was begun and not finished; give the same `fix apply` again first"
        )
    return fix.after


def _check_unmoved(lake: Lake, fix: Fix, what: str, *, way_out: str) -> None:
    """Every table holds what the fix found or what it led to: then nothing that came later is lost."""
    for table, after in led_to(fix).items():
        where = Partition(fix.day.source, fix.day.dt, after.schema_version)
        now, before = read_state(lake.committer, table, where), fix.before[table]
        if (now.rows, now.checksum) not in {(after.rows, after.checksum), (before.rows, before.checksum)}:
            raise ConflictError(
                f"cannot {what} fix {fix.fix_id[:8]}: {table} of {fix.day.key} has changed since; {way_out}"
            )


def _bring_all_back(lake: Lake, fix: Fix, states: States) -> None:
    notes = RunNotes((fix.day,))
    for table, state in states.items():
        if fix.structural and table.startswith("clean."):
            continue
        commit = bring_back(lake.committer, state, fix.day)
        where = Partition(fix.day.source, fix.day.dt, state.schema_version)
        record_commit(lake, notes, commit, [where], lambda _: ())
    if not fix.structural:
        materialize_clean(lake, [fix.day])


def _point(lake: Lake, target: Effective, *, reason: str, who: str) -> None:
    set_effective(lake.committer, lake.decisions, [target], reason=reason, who=who)
    refresh_current(lake, SourceDay(target.source, target.dt))
