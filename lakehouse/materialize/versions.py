"""Which schema version of a day readers get: moved with a reason, and moved back. Data files are not touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.errors import ConflictError, DataError
from lakehouse.lake import Lake
from lakehouse.materialize.days import checked_days, dataset_of
from lakehouse.materialize.feature import refresh_current
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.tables.effective import Day, Effective, Move, decided_pointers, read_moves, set_effective


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
    decided = decided_pointers(lake.decisions)
    # The version that a fix made effective already stays known as that fix.
    pointers = [_same_version(decided.get((one.dataset, one.source, one.dt)), one) for one in wanted]
    return _move(lake, pointers, reason, who)


def undo_version(lake: Lake, days: Sequence[SourceDay], *, reason: str, who: str) -> list[Effective]:
    """Give readers what each day's last move took away; gives the pointers that moved.

    The same words given again finish what they began and take nothing further back; other words take back the move
    before. Raises ConflictError for a day that has been moved by nobody, or last by a fix; then nothing moves.
    """
    targets = [_target(lake, day, reason, who) for day in checked_days(lake, days)]
    undoes = {(one.dataset, one.source, one.dt): move for one, move in targets if move is not None}
    return _move(lake, [one for one, _ in targets], reason, who, undoes)


def moves_of(lake: Lake, source: str) -> list[Move]:
    """All moves of a source's days, by day and time."""
    day = SourceDay(source, lake.clock.today())
    found = read_moves(lake.decisions, dataset_of(lake, day), source)
    return [move for dt in sorted(found) for move in found[dt]]


def _target(lake: Lake, day: SourceDay, reason: str, who: str) -> tuple[Effective, str | None]:
    """The pointer that an undo leads to, and the id of the move that it takes back; None where it has already."""
    moves = read_moves(lake.decisions, dataset_of(lake, day), day.source).get(day.dt, [])
    if moves and moves[-1].undoes is not None and (moves[-1].reason, moves[-1].who) == (reason, who):
        return moves[-1].pointer, None
    standing = _standing(moves)
    if len(standing) < 2:
        raise ConflictError(f"{day.key}: nobody has moved its effective version yet, so there is nothing to undo")
    before, last = standing[-2:]
    if last.pointer.fix_id is not None or before.pointer.fix_id is not None:
        fix = last.pointer.fix_id or before.pointer.fix_id
        raise ConflictError(
            f"{day.key}: fix {str(fix)[:8]} decides what is effective; use `lakehouse fix rollback` or `fix redo`"
        )
    return before.pointer, last.decision_id


def _standing(moves: Sequence[Move]) -> list[Move]:
    """The moves that nobody took back, without those that led where the pointer was already."""
    found: list[Move] = []
    for move in moves:
        ids = [one.decision_id for one in found]
        if move.undoes in ids:
            del found[ids.index(str(move.undoes)) :]
        elif not found or found[-1].pointer != move.pointer:
            found.append(move)
    return found


def _move(
    lake: Lake, pointers: Sequence[Effective], reason: str, who: str, undoes: Mapping[Day, str] | None = None
) -> list[Effective]:
    moved = set_effective(lake.committer, lake.decisions, pointers, reason=reason, who=who, undoes=undoes)
    # Also where a run before this one died between the two steps.
    for source in sorted({one.source for one in pointers}):
        refresh_current(lake, SourceDay(source, lake.clock.today()))
    return moved


def _has_rows(lake: Lake, wanted: Effective) -> bool:
    table = lake.catalog.schema(wanted.dataset, None).table
    return bool(lake.committer.files(table, Partition(wanted.source, wanted.dt, wanted.schema_version)))


def _same_version(decided: Effective | None, wanted: Effective) -> Effective:
    return decided if decided is not None and decided.schema_version == wanted.schema_version else wanted
