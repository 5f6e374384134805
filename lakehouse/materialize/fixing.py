"""A fix of one published day: made anew or given by a file, rolled back and redone by copies, features following.

A command that died is finished by the same command. Callers hold the lock of fixes. Not here: commands over several
days (`fix_units`), and how a fix is recorded (`tables.fixes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from lakehouse.errors import ConflictError, DataError
from lakehouse.lake import Lake
from lakehouse.materialize.clean import clean_partition_frames, materialize_clean
from lakehouse.materialize.days import dataset_of, record_partition
from lakehouse.materialize.feature import materialize_feature, refresh_current
from lakehouse.materialize.fixed_tables import (
    bring_all_back,
    check_replaceable,
    check_unmoved,
    count_changes,
    read_states,
    record_table,
    template_before,
)
from lakehouse.materialize.given_rows import GivenRows, given_frames
from lakehouse.materialize.holds import raw_marks
from lakehouse.materialize.index import RunNotes, record_commit
from lakehouse.materialize.result import ProgressSink, failed_days
from lakehouse.model.partition import SourceDay
from lakehouse.tables.content import content_hash
from lakehouse.tables.differences import RowDiff, compare_rows
from lakehouse.tables.effective import Effective, decided_pointers, read_moves, set_effective
from lakehouse.tables.fixes import (
    REDO,
    ROLLBACK,
    Code,
    Fix,
    Pointer,
    Status,
    all_fixes,
    check_newest,
    led_to,
    read_rows,
    record_applied,
    record_fix,
    record_move,
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What one `fix apply` asks for: why, for which days, and the rows of each day where a file gives them."""

    code: Code
    reason: str
    who: str
    days: tuple[date, ...]
    given: dict[SourceDay, GivenRows] | None = None

    def rows_of(self, day: SourceDay) -> GivenRows | None:
        """The rows that are given for a day."""
        return self.given[day] if self.given is not None else None

    def began(self, fix: Fix) -> bool:
        """Whether a fix comes from a command with the same words, days and rows."""
        rows = self.rows_of(fix.day)
        asked = (self.code, self.reason, self.days, rows.checksum if rows is not None else None)
        return (fix.code, fix.reason, fix.days, fix.given) == asked


def begin_fix(lake: Lake, day: SourceDay, wish: Wish, *, head: str | None) -> Fix:
    """Record a fix of a day with what its partitions hold; raises DataError where there is nothing to fix."""
    dataset, partition, rows = dataset_of(lake, day), record_partition(lake, day), wish.rows_of(day)
    pointer = decided_pointers(lake.decisions).get((dataset, day.source, day.dt))
    before = read_states(lake, day, partition)
    if not any(state.rows for state in before.values()) and pointer is None:
        raise DataError(f"{day.key} has no clean rows yet, so there is nothing to fix; materialize it instead")
    if rows is not None:
        given_frames(lake, day, rows, before, wish.reason)
    fix = Fix(
        fix_id="",
        dataset=dataset,
        partition=partition,
        code=wish.code.value,
        reason=wish.reason,
        who=wish.who,
        decided_at=lake.clock.now_utc(),
        pointer=Pointer(pointer.schema_version, pointer.fix_id) if pointer else None,
        template=template_before(lake, day, partition),
        before=before,
        given=rows.checksum if rows is not None else None,
        days=wish.days,
        head=head,
    )
    earlier = newest_fix(lake, all_fixes(lake.decisions), day)
    return record_fix(lake.decisions, fix, follows=f"{earlier.fix_id}/{earlier.moves}" if earlier else "")


def finish_fix(lake: Lake, fix: Fix, wish: Wish, say: ProgressSink) -> None:
    """Give readers what a recorded fix leads to, in one step a table, from wherever an earlier run stopped.

    Raises DataError where the day cannot be made, with everything as it was.
    """
    day = fix.day
    say(f"fix {fix.fix_id[:8]} of {day.key}: making its partitions anew")
    rows = wish.rows_of(day)
    failed: dict[SourceDay, str] = {}
    if rows is not None:
        _put_rows(lake, fix, rows)
    else:
        # The fix stands in the decisions already, so no earlier rollback holds the day any more.
        failed = failed_days(materialize_clean(lake, [day], say))
    failed = failed or failed_days(materialize_feature(lake, [day], say))
    if failed:
        raise DataError(f"fix {fix.fix_id[:8]} of {day.key} was not applied: {failed[day]}")
    if fix.after is None:
        after = read_states(lake, day, fix.partition)
        changes = count_changes(lake, day, fix.before, after)
        record_applied(lake.decisions, fix, after, changes, raw=raw_marks(lake, day))
    target = Effective(fix.dataset, day.source, day.dt, fix.partition.schema_version, fix.fix_id)
    point(lake, target, reason=wish.reason, who=wish.who)


def _put_rows(lake: Lake, fix: Fix, rows: GivenRows) -> None:
    notes = RunNotes((fix.day,))
    for table, frame in given_frames(lake, fix.day, rows, fix.before, fix.reason).items():
        commit = lake.committer.replace(table, frame, [fix.partition])
        record_commit(lake, notes, commit, [fix.partition])


def newest_fix(lake: Lake, fixes: Sequence[Fix], day: SourceDay) -> Fix | None:
    """The last fix of a day in the version that its source writes."""
    wanted = (dataset_of(lake, day), record_partition(lake, day))
    return next((fix for fix in reversed(fixes) if (fix.dataset, fix.partition) == wanted), None)


def is_finished(lake: Lake, fix: Fix) -> bool:
    """Whether a fix was seen to its end, its pointer included."""
    moves = read_moves(lake.decisions, fix.dataset, fix.day.source).get(fix.day.dt, [])
    return fix.after is not None and fix.fix_id in {move.pointer.fix_id for move in moves}


def mend_pointer(lake: Lake, fix: Fix) -> None:
    """See to it that a pointer that a finished fix decided on is in effect, unless somebody moved it since."""
    decided = decided_pointers(lake.decisions).get((fix.dataset, fix.day.source, fix.day.dt))
    if decided is not None and decided.fix_id == fix.fix_id:
        point(lake, decided, reason=fix.reason, who=fix.who)


def check_not_begun(lake: Lake, fix: Fix | None) -> None:
    """Raise ConflictError for a fix of a day that another command began and did not finish."""
    if fix is None or fix.status is Status.ROLLED_BACK or is_finished(lake, fix):
        return
    days = f"--from {fix.days[0]} --to {fix.days[-1]}" if len(fix.days) > 1 else f"--dt {fix.day.dt}"
    raise ConflictError(
        f"fix {fix.fix_id[:8]} of {fix.day.key} was begun and not finished; finish it first with its own words: "
        f"{days} --code {fix.code} --reason {fix.reason!r}{' and its file' if fix.given else ''}; "
        "or give it up with `lakehouse fix rollback`"
    )


def leads_there(lake: Lake, fix: Fix) -> bool:
    """Whether its day, made anew with the catalog of now, gets the rows that a fix led to; so it does from a file."""
    if fix.given is not None:
        return led_to(fix)[record_table(lake, fix.day)].checksum == fix.given
    after = led_to(fix)
    return all(
        (frame.num_rows, content_hash(frame)) == (after[table].rows, after[table].checksum)
        for table, frame in clean_partition_frames(lake, fix.day).items()
    )


def check_roll_back(lake: Lake, fixes: Sequence[Fix], fix: Fix, *, rerun: bool) -> None:
    """Raise ConflictError where a rollback would lose rows or tear a fix that came later."""
    check_newest(fixes, fix, "roll back")
    below = [one for one in fixes[: fixes.index(fix)] if (one.dataset, one.partition) == (fix.dataset, fix.partition)]
    given = [one for one in below if one.status is not Status.ROLLED_BACK][-1:]
    if rerun and given and given[0].given:
        raise ConflictError(
            f"cannot make {fix.day.key} anew: fix {given[0].fix_id[:8]} gave it the rows of a file, which its pages do "
            "not have; roll back without --rerun, or apply the file again"
        )
    if not rerun or fix.structural:
        check_unmoved(lake, fix, "roll back", way_out="`--rerun` makes the day anew with the template of before")
    else:
        check_replaceable(lake, fix)


def roll_back_day(lake: Lake, fix: Fix, *, reason: str, who: str, rerun: bool, say: ProgressSink) -> None:
    """Bring back what the partitions held before a fix that may be rolled back; see `fix_units.roll_back`."""
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
        bring_all_back(lake, fix, fix.before)
    pointer = fix.pointer or Pointer(fix.partition.schema_version, None)
    target = Effective(fix.dataset, fix.day.source, fix.day.dt, pointer.schema_version, pointer.fix_id)
    point(lake, target, reason=reason, who=who)


def check_redo(lake: Lake, fixes: Sequence[Fix], fix: Fix) -> None:
    """Raise ConflictError where a redo would lose rows or tear a fix that came later."""
    led_to(fix)
    check_newest(fixes, fix, "redo")
    check_unmoved(lake, fix, "redo", way_out="apply a new fix instead")


def redo_day(lake: Lake, fix: Fix, *, reason: str, who: str, say: ProgressSink) -> None:
    """Apply a rolled back fix that may be redone again; see `fix_units.redo`."""
    if fix.status is Status.ROLLED_BACK:
        record_move(lake.decisions, fix, REDO, raw=raw_marks(lake, fix.day), reason=reason, who=who)
    say(f"fix {fix.fix_id[:8]} of {fix.day.key}: bringing back what it led to")
    bring_all_back(lake, fix, led_to(fix))
    target = Effective(fix.dataset, fix.day.source, fix.day.dt, fix.partition.schema_version, fix.fix_id)
    point(lake, target, reason=reason, who=who)


def diff_fix(lake: Lake, fix: Fix) -> dict[str, RowDiff]:
    """The rows that a fix added, removed and changed, by table; whatever became of it since."""
    return {
        table: compare_rows(
            table, read_rows(lake.committer, fix.before[table], fix.day), read_rows(lake.committer, after, fix.day)
        )
        for table, after in led_to(fix).items()
    }


def point(lake: Lake, target: Effective, *, reason: str, who: str) -> None:
    """Move a day's pointer, and the table of newest revisions with it."""
    set_effective(lake.committer, lake.decisions, [target], reason=reason, who=who)
    refresh_current(lake, SourceDay(target.source, target.dt))
