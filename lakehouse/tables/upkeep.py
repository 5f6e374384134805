"""Upkeep of one table after the other: expiry down to a bounded number of table snapshots, then garbage collection.

Both hold the table's lock. The list of files that become garbage is written first, the metadata commit follows, files
are removed after it, and the list last; a run that dies in between is finished by the next one. Not here: what an
expiry drops (`expiry`) and which files are needed (`reach`, `garbage`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from lakehouse.clock import Clock, system_now
from lakehouse.errors import ConflictError, DataError, LakehouseError, UnknownNameError
from lakehouse.logs import get_log
from lakehouse.tables import garbage
from lakehouse.tables.current import check_current, write_current
from lakehouse.tables.expiry import KEEP_TAGS, KEEP_UNTAGGED, Expiry, commit_expiry, plan_expiry
from lakehouse.tables.reach import FileReader, Kind, TableFile
from lakehouse.tables.storage import StoredFile, TableFiles, answering, open_files, plain_path
from lakehouse.tables.tags import tag_day

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

ORPHAN_AGE = timedelta(days=1)
PACKS = "raw.snapshots"
ATTEMPTS = 5


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
    with answering(table), _open(committer, table, now).held() as work:
        return work.expire(Limits(keep_untagged, keep_tags))[0]


def collect_garbage(
    committer: Committer, table: str, *, orphan_age: timedelta | None = ORPHAN_AGE, now: datetime | None = None
) -> Removal:
    """Remove listed garbage that nothing needs any more, and files that no table snapshot ever reached.

    The latter must be older than `orphan_age`, so that a writer between its files and its commit keeps them; with
    None they are not looked for. Raises as `expire` does.
    """
    with answering(table):
        work = _open(committer, table, now)
        stored = work.list_stored(orphan_age)
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
    work = _open(committer, table, now)
    stored = work.list_stored(limits.orphan_age)
    expiry, files = _apply(work, stored, limits) if apply else _plan(work, stored, limits)
    tagged = tag.name if tag is not None and tag.changed else None
    seconds = round(time.perf_counter() - began, 3)
    return UpkeepReport(table, expiry, _removal(table, files, stored), apply, seconds, tagged)


def _apply(work: _Work, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    if stored:
        with suppress(DataError):  # judged again under the lock; here it only keeps the time of the lock short
            work.needed()
    with work.held():
        expiry, listed = work.expire(limits)
        return expiry, work.collect(stored, limits.orphan_age, listed)


def _plan(work: _Work, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    with suppress(DataError):  # another upkeep may remove files while this one, without a lock, reads them
        return _look(work, stored, limits)
    return _look(work, stored, limits)


def _look(work: _Work, stored: list[StoredFile], limits: Limits) -> tuple[Expiry, dict[str, TableFile]]:
    work.reload()
    expiry = work.plan(limits)
    doomed = garbage.files_only_in(work.reader, work.table.metadata, set(expiry.snapshots), work.recorded)
    waiting = garbage.read_lists(work.files, work.table.location())
    return expiry, work.own(doomed | work.judge(waiting, stored, limits.orphan_age))


@dataclass(slots=True)
class _Work:
    """One table under upkeep, with what was read of it."""

    committer: Committer
    table: Table
    files: TableFiles
    reader: FileReader
    now: datetime
    recorded: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        return ".".join(self.table.name())

    @property
    def folder(self) -> str:
        return plain_path(self.table.location()).rstrip("/")

    @contextmanager
    def held(self) -> Iterator[_Work]:
        """Hold the table's lock and see the table as it is under it."""
        with self.committer.locks.hold(self.name):
            self.reload()
            check_current(self.table)
            yield self

    def reload(self) -> None:
        """See the table and the recorded decisions as they are now; what was read of manifests stays true."""
        self.table = _load(self.committer, self.name)
        self.recorded = garbage.recorded_files(self.committer.iceberg)

    def needed(self) -> set[str]:
        """Plain paths of all files that must stay."""
        reached = self.reader.files(self.table.metadata)
        return {*reached, *self.recorded, *garbage.logged_metadata(self.table)}

    def plan(self, limits: Limits) -> Expiry:
        """What an expiry would drop now."""
        return plan_expiry(
            self.table.metadata,
            self.name,
            keep_untagged=limits.keep_untagged,
            keep_tags=limits.keep_tags,
            now=self.now,
        )

    def expire(self, limits: Limits) -> tuple[Expiry, garbage.GarbageList | None]:
        """Write the list of what becomes garbage, then commit the expiry."""
        for _ in range(ATTEMPTS):
            plan = self.plan(limits)
            if plan.empty:
                return plan, None
            doomed = garbage.files_only_in(self.reader, self.table.metadata, set(plan.snapshots), self.recorded)
            listed = garbage.write_list(self.files, self.table, self.own(doomed).values(), self.now)
            try:
                commit_expiry(self.table, plan)
            except CommitFailedException:
                self.files.remove([listed.path])
                self.reload()
                continue
            write_current(self.table)
            return plan, listed
        raise ConflictError(
            f"upkeep of {self.name}: others changed its branches or tags {ATTEMPTS} times in a row; "
            "nothing was expired, run it again"
        )

    def collect(
        self, stored: list[StoredFile], orphan_age: timedelta | None, fresh: garbage.GarbageList | None = None
    ) -> dict[str, TableFile]:
        """Remove what nothing needs; `fresh` was judged under this very lock and is not judged again."""
        waiting = garbage.read_lists(self.files, self.table.location())
        judged = [found for found in waiting if fresh is None or found.path != fresh.path]
        doomed = {} if fresh is None else garbage.unneeded(fresh.files, self.recorded)
        doomed = self.own(doomed | self.judge(judged, stored, orphan_age))
        self.files.remove(doomed)
        self.files.remove(found.path for found in waiting)
        return doomed

    def judge(
        self, waiting: list[garbage.GarbageList], stored: list[StoredFile], orphan_age: timedelta | None
    ) -> dict[str, TableFile]:
        """Files of the lists and of the storage that nothing needs now."""
        if not waiting and not stored:
            return {}
        needed = self.needed()
        doomed: dict[str, TableFile] = {}
        for found in waiting:
            doomed |= garbage.unneeded(found.files, needed)
        return doomed | garbage.orphans(stored, needed, self.now - (orphan_age or timedelta()))

    def list_stored(self, orphan_age: timedelta | None) -> list[StoredFile]:
        """All files of the table, listed before the lock: what is committed afterwards is found needed under it."""
        return [] if orphan_age is None else list(self.files.list(self.folder))

    def own(self, files: Mapping[str, TableFile]) -> dict[str, TableFile]:
        """Those that upkeep may remove: below the table's own folder, and no page bodies, which are evidence."""
        ours = {path: file for path, file in files.items() if path.startswith(self.folder + "/")}
        if self.name == PACKS:
            return {path: file for path, file in ours.items() if file.kind is not Kind.DATA}
        return ours


def _open(committer: Committer, table: str, now: datetime | None) -> _Work:
    loaded = _load(committer, table)
    files = open_files(loaded.location(), {**committer.iceberg.properties, **loaded.io.properties})
    return _Work(committer, loaded, files, FileReader(loaded.io), now or system_now())


def _load(committer: Committer, table: str) -> Table:
    try:
        return committer.iceberg.load_table(table)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise UnknownNameError(
            f"upkeep: table {table} does not exist; `lakehouse upkeep` without names goes over all tables"
        ) from error


def _removal(table: str, files: Mapping[str, TableFile], stored: Iterable[StoredFile]) -> Removal:
    kinds = {kind.value: sum(1 for file in files.values() if file.kind is kind) for kind in Kind}
    sizes = {file.path: file.bytes for file in stored}
    size = sum(sizes.get(file.path, file.bytes) for file in files.values())
    return Removal(table, len(files), size, {kind: count for kind, count in kinds.items() if count})
