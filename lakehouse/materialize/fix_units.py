"""`fix apply`, `rollback` and `redo` over one day or several: the days of one command are one unit.

Each day is recorded right before it is fixed, so that what others commit meanwhile is never lost; the days know each
other by the id of the first. A command that failed or died on a day leaves the days before it done, says so, and
finishes when it is given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date

from lakehouse.errors import DataError, UnknownNameError
from lakehouse.lake import Lake
from lakehouse.materialize.days import checked_days
from lakehouse.materialize.fixing import (
    Wish,
    begin_fix,
    check_not_begun,
    check_redo,
    check_roll_back,
    finish_fix,
    is_finished,
    leads_there,
    mend_pointer,
    newest_fix,
    redo_day,
    roll_back_day,
)
from lakehouse.materialize.given_rows import GivenRows
from lakehouse.materialize.result import ProgressSink, ignore_progress
from lakehouse.model.partition import SourceDay
from lakehouse.tables.fixes import Code, Fix, Status, all_fixes, check_newest, days_of, find_fix, standing_after

LOCK = "meta.fixes"
Begun = Mapping[SourceDay, Fix]


def apply_fixes(
    lake: Lake,
    days: Iterable[SourceDay],
    *,
    code: Code,
    reason: str,
    who: str,
    given: dict[SourceDay, GivenRows] | None = None,
    progress: ProgressSink | None = None,
) -> list[Fix]:
    """Make days of one source anew with the catalog of now, or of `given` rows, and record why and what changed.

    Readers get the new rows of a day in one step a table. Days are done in order; raises DataError at the first that
    cannot be made, with that day as it was and the days before it done. UnknownNameError and ConfigError for days that
    cannot be, ConflictError where another fix of a day was begun and not finished.
    """
    say, wanted = progress or ignore_progress, checked_days(lake, days)
    wish = Wish(code, reason, who, tuple(day.dt for day in wanted), given)
    with _alone(lake):
        begun = _begun(lake, wanted, wish)
        head = next((fix.unit for fix in begun.values()), None)
        again = len(begun) == len(wanted) and all(is_finished(lake, fix) for fix in begun.values())
        done: list[Fix] = []
        for day in wanted:
            fix = begun.get(day)
            if fix is not None and not again and is_finished(lake, fix):
                mend_pointer(lake, fix)
            else:
                with _telling_days(wanted, done):
                    fix = fix or begin_fix(lake, day, wish, head=head)
                    finish_fix(lake, fix, wish, say)
            head = head or fix.fix_id
            done.append(fix)
        return _again(lake, done)


def _begun(lake: Lake, days: Sequence[SourceDay], wish: Wish) -> Begun:
    """The fixes of the same command that it did not finish, or that it finished and that lead to the same rows now."""
    fixes = all_fixes(lake.decisions)
    newest = {day: newest_fix(lake, fixes, day) for day in days}
    mine = {
        day: fix
        for day, fix in newest.items()
        if fix is not None and fix.status is not Status.ROLLED_BACK and wish.began(fix)
    }
    units = {fix.unit for fix in mine.values()}
    for day, fix in newest.items():
        if day not in mine:
            check_not_begun(lake, fix)
    if len(units) != 1:
        return {}
    whole = len(mine) == len(days) and all(is_finished(lake, fix) for fix in mine.values())
    return mine if not whole or all(leads_there(lake, fix) for fix in mine.values()) else {}


def roll_back(
    lake: Lake,
    fix_id: str,
    *,
    reason: str,
    who: str,
    rerun: bool = False,
    dt: date | None = None,
    progress: ProgressSink | None = None,
) -> list[Fix]:
    """Bring back what the partitions held before a fix, by copies, on all its days or on `dt` alone.

    Other partitions and later commits stay. Where a partition got rows after the fix that is refused with
    ConflictError, and no day moves; `rerun` then makes the days anew with the template of before. A structural fix
    only gives readers the earlier version back.
    """
    say = progress or ignore_progress
    with _alone(lake):
        fixes = all_fixes(lake.decisions)
        members = _members(fixes, find_fix(fixes, fix_id), dt)
        # A day that was rolled back by itself and fixed again since is nothing of this fix any more.
        left = [fix for fix in members if fix.status is not Status.ROLLED_BACK or not standing_after(fixes, fix)]
        if not left:
            check_newest(fixes, members[-1], "roll back")
        for fix in left:
            check_roll_back(lake, fixes, fix, rerun=rerun)
        for fix in reversed(left):
            roll_back_day(lake, fix, reason=reason, who=who, rerun=rerun, say=say)
        return _again(lake, left)


def redo(
    lake: Lake, fix_id: str, *, reason: str, who: str, dt: date | None = None, progress: ProgressSink | None = None
) -> list[Fix]:
    """Apply a rolled back fix again on all its days or on `dt` alone, by copies of the files it led to.

    Raises ConflictError where rows came after it; then no day moves.
    """
    say = progress or ignore_progress
    with _alone(lake):
        fixes = all_fixes(lake.decisions)
        members = _members(fixes, find_fix(fixes, fix_id), dt)
        for fix in members:
            check_redo(lake, fixes, fix)
        for fix in members:
            redo_day(lake, fix, reason=reason, who=who, say=say)
        return _again(lake, members)


@contextmanager
def _alone(lake: Lake) -> Iterator[None]:
    """One fix at a time: each reads what is there before it moves anything."""
    with lake.committer.locks.hold(LOCK):
        yield


@contextmanager
def _telling_days(days: Sequence[SourceDay], done: Sequence[Fix]) -> Iterator[None]:
    """Let the error of a day say which days before it are done."""
    try:
        yield
    except DataError as error:
        if not done:
            raise
        names = f"{len(done)} of {len(days)} days are done ({', '.join(fix.day.dt.isoformat() for fix in done)})"
        raise DataError(
            f"{error}; {names}; the same command finishes, `lakehouse fix rollback {done[0].unit[:8]}` undoes them"
        ) from error


def _members(fixes: Sequence[Fix], fix: Fix, dt: date | None) -> list[Fix]:
    members = [one for one in days_of(fixes, fix) if dt in {None, one.day.dt}]
    if not members:
        raise UnknownNameError(f"fix {fix.fix_id[:8]} has nothing of {dt}; `lakehouse fix show` names its days")
    return members


def _again(lake: Lake, fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes as they stand now."""
    now = {fix.fix_id: fix for fix in all_fixes(lake.decisions)}
    return [now[fix.fix_id] for fix in fixes]
