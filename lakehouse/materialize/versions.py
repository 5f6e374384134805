"""Which schema version of a day readers get: moved with a reason, and moved back. Data files are not touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakehouse.errors import ConflictError, DataError
from lakehouse.lake import Lake
from lakehouse.materialize.days import checked_days, dataset_of
from lakehouse.materialize.feature import refresh_current
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.tables.effective import Effective, Move, current, read_moves, set_effective


def set_version(lake: Lake, days: Sequence[SourceDay], version: int, *, reason: str, who: str) -> list[Effective]:
    """Make a schema version of some days effective, all at once; gives the pointers that moved.

    Raises DataError for a day without rows of that version; then nothing moves.
    """
    wanted = [Effective(dataset_of(lake, day), day.source, day.dt, version, None) for day in checked_days(lake, days)]
    missing = [one for one in wanted if not _has_rows(lake, one)]
    if missing:
        places = ", ".join(f"{one.source}|{one.dt}" for one in missing)
        raise DataError(
            f"cannot make version {version} effective: there are no rows of it for {places}; materialize them first"
        )
    known = current(lake.committer)
    # The version that a fix made effective already stays known as that fix.
    moving = [one for one in wanted if _version_of(known.get((one.dataset, one.source, one.dt))) != version]
    return _move(lake, moving, reason, who)


def undo_version(lake: Lake, days: Sequence[SourceDay], *, reason: str, who: str) -> list[Effective]:
    """Give readers what each day's last move took away; gives the pointers that moved.

    Raises ConflictError for a day that has been moved by nobody, or last by a fix; then nothing moves.
    """
    targets = [_before_last(lake, day) for day in checked_days(lake, days)]
    return _move(lake, targets, reason, who)


def moves_of(lake: Lake, source: str) -> list[Move]:
    """All moves of a source's days, by day and time."""
    day = SourceDay(source, lake.clock.today())
    found = read_moves(lake.decisions, dataset_of(lake, day), source)
    return [move for dt in sorted(found) for move in found[dt]]


def _before_last(lake: Lake, day: SourceDay) -> Effective:
    moves = read_moves(lake.decisions, dataset_of(lake, day), day.source).get(day.dt, [])
    by_id = {move.decision_id: move for move in moves}
    if not moves or moves[-1].follows not in by_id:
        raise ConflictError(f"{day.key}: nobody has moved its effective version yet, so there is nothing to undo")
    last, before = moves[-1], by_id[str(moves[-1].follows)]
    if last.pointer.fix_id is not None or before.pointer.fix_id is not None:
        fix = last.pointer.fix_id or before.pointer.fix_id
        raise ConflictError(
            f"{day.key}: fix {str(fix)[:8]} decides what is effective; use `lakehouse fix rollback` or `fix redo`"
        )
    return replace(before.pointer)


def _move(lake: Lake, pointers: Sequence[Effective], reason: str, who: str) -> list[Effective]:
    moved = set_effective(lake.committer, lake.decisions, pointers, reason=reason, who=who)
    # Also where a run before this one died between the two steps.
    for source in sorted({one.source for one in pointers}):
        refresh_current(lake, SourceDay(source, lake.clock.today()))
    return moved


def _has_rows(lake: Lake, wanted: Effective) -> bool:
    table = lake.catalog.schema(wanted.dataset, None).table
    return bool(lake.committer.files(table, Partition(wanted.source, wanted.dt, wanted.schema_version)))


def _version_of(pointer: Effective | None) -> int | None:
    return None if pointer is None else pointer.schema_version
