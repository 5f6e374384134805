"""Upkeep of one table after the other: expiry down to a bounded number of table snapshots, then garbage collection.

Not here: what an expiry drops (`expiry`), which files are needed (`reach`, `garbage`), and how the two are done under
the table's lock (`upkeep_work`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.clock import Clock
from lakehouse.errors import ConflictError, DataError, LakehouseError, UnknownNameError
from lakehouse.logs import get_log
from lakehouse.tables import garbage
from lakehouse.tables.expiry import KEEP_TAGS, KEEP_UNTAGGED, Expiry
from lakehouse.tables.reach import Kind, TableFile
from lakehouse.tables.storage import StoredFile, answering
from lakehouse.tables.tags import tag_day
from lakehouse.tables.upkeep_work import UpkeepWork, open_work

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

ORPHAN_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much upkeep keeps: untagged table snapshots, tags, and the age from which unreached files are orphans.

    With `orphan_age` None the files of a table are not listed, so upkeep costs little after every few commits.
    """

    keep_untagged: int = KEEP_UNTAGGED
    keep_tags: int = KEEP_TAGS
    orphan_age: timedelta | None = ORPHAN_AGE


@dataclass(frozen=True, slots=True)
class Removal:
    """What garbage collection removes: number of files, bytes known from metadata or listing, files by kind."""

    table: str
    files: int
    bytes: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """Upkeep of one table; with `applied` false it says what would be done. `tagged` is the day tag that is new."""

    table: str
    expiry: Expiry
    removal: Removal
    applied: bool
    seconds: float
    tagged: str | None = None


def expire(
    committer: Committer,
    table: str,
    *,
    keep_untagged: int = KEEP_UNTAGGED,
    keep_tags: int = KEEP_TAGS,
    now: datetime | None = None,
) -> Expiry:
    """Drop old untagged table snapshots and day tags; the files that only they reached are listed as garbage.

    Nothing is committed where nothing is to be dropped. Raises UnknownNameError for a table that does not exist,
    ConflictError where others keep changing the table's tags, DataError where its metadata is broken.
    """
    with answering(table), open_work(committer, table, now).held() as work:
        return work.expire(keep_untagged, keep_tags)[0]


def collect_garbage(
    committer: Committer,
    table: str,
    *,
    orphan_age: timedelta | None = ORPHAN_AGE,
    apply: bool = True,
    now: datetime | None = None,
) -> Removal:
    """Remove listed garbage that nothing needs any more, and files that no table snapshot ever reached.

    The latter must be older than `orphan_age`, so that a writer between its files and its commit keeps them; with
    None they are not looked for. With `apply=False` it only says what would go. Raises as `expire` does, and DataError
    where a file that a table snapshot needs is missing: then nothing is removed.
    """
    with answering(table):
        work = open_work(committer, table, now)
        stored = work.list_stored(orphan_age)
        if not apply:
            work.reload()
            return _removal(table, work.own(work.judge(work.waiting, stored, orphan_age)), stored)
        with work.held():
            return _removal(table, work.collect(stored, orphan_age), stored)


def upkeep(
    committer: Committer,
    tables: Iterable[str],
    limits: Limits | None = None,
    *,
    apply: bool = True,
    clock: Clock | None = None,
    now: datetime | None = None,
) -> list[UpkeepReport]:
    """Expire and collect table after table; `apply=False` changes nothing and says what would be done.

    With a `clock` each table's state at the end of yesterday is tagged first. A table that cannot be kept is logged
    and does not keep the others from it; its error is raised at the end. UnavailableError is raised at once.
    """
    limits = limits or Limits()
    reports = []
    failures: list[LakehouseError] = []
    for table in tables:
        try:
            with answering(table):
                report = _upkeep_one(committer, table, limits, apply, clock, now)
        except (ConflictError, DataError, UnknownNameError) as error:
            get_log().error("upkeep failed", table=table, error=str(error))
            failures.append(error)
            continue
        get_log().info(
            "upkeep",
            table=table,
            applied=apply,
            snapshots=len(report.expiry.snapshots),
            files=report.removal.files,
        )
        reports.append(report)
    if failures:
        raise failures[0]
    return reports


def _upkeep_one(  # noqa: PLR0917  private, and called once
    committer: Committer, table: str, limits: Limits, apply: bool, clock: Clock | None, now: datetime | None
) -> UpkeepReport:
    began = time.perf_counter()
    tag = None
    if clock is not None:
        tag = tag_day(committer, table, clock.today() - timedelta(days=1), clock=clock, apply=apply)
    work = open_work(committer, table, now)
    stored = work.list_stored(limits.orphan_age)
    expiry, files = _apply(work, stored, limits) if apply else _plan(work, stored, limits)
    tagged = tag.name if tag is not None and tag.changed else None
    seconds = round(time.perf_counter() - began, 3)
    return UpkeepReport(table, expiry, _removal(table, files, stored), apply, seconds, tagged)


def _apply(work: UpkeepWork, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    if stored:
        with suppress(DataError):  # judged again under the lock; here it only keeps the time of the lock short
            work.needed()
    with work.held():
        expiry, listed = work.expire(limits.keep_untagged, limits.keep_tags)
        return expiry, work.collect(stored, limits.orphan_age, listed)


def _plan(work: UpkeepWork, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    with suppress(DataError):  # another upkeep may remove files while this one, without a lock, reads them
        return _look(work, stored, limits)
    return _look(work, stored, limits)


def _look(work: UpkeepWork, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    work.reload()
    expiry = work.plan(limits.keep_untagged, limits.keep_tags)
    doomed = garbage.files_only_in(work.reader, work.table.metadata, set(expiry.snapshots), work.held_back)
    return expiry, work.own(doomed | work.judge(work.waiting, stored, limits.orphan_age))


def _removal(table: str, files: Mapping[str, TableFile], stored: Iterable[StoredFile]) -> Removal:
    kinds = {kind.value: sum(1 for file in files.values() if file.kind is kind) for kind in Kind}
    sizes = {file.path: file.bytes for file in stored}
    size = sum(sizes.get(file.path, file.bytes) for file in files.values())
    return Removal(table, len(files), size, {kind: count for kind, count in kinds.items() if count})
