"""One table under upkeep: what it needs, what an expiry commits, what is removed afterwards.

The table's lock is held throughout. The list of files that become garbage is written first, the metadata commit
follows, files are removed after it, and the list last; a run that dies in between is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from lakehouse.clock import system_now
from lakehouse.errors import ConflictError, DataError, UnknownNameError
from lakehouse.tables import garbage
from lakehouse.tables.current import check_current, file_name, read_current, write_current
from lakehouse.tables.expiry import Expiry, commit_expiry, plan_expiry
from lakehouse.tables.reach import FileReader, Kind, TableFile
from lakehouse.tables.storage import StoredFile, TableFiles, open_files, plain_path

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

PACKS = "raw.snapshots"
ATTEMPTS = 5


@dataclass(slots=True)
class UpkeepWork:
    """One table under upkeep, with what was read of it.

    `waiting` are the garbage lists that are due, `held_back` the plain paths that recorded decisions and lists that are
    not due keep.
    """

    committer: Committer
    table: Table
    files: TableFiles
    reader: FileReader
    now: datetime
    waiting: tuple[garbage.GarbageList, ...] = ()
    held_back: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return ".".join(self.table.name())

    @property
    def folder(self) -> str:
        return plain_path(self.table.location()).rstrip("/")

    @contextmanager
    def held(self) -> Iterator[UpkeepWork]:
        """Hold the table's lock and see the table as it is under it."""
        with self.committer.locks.hold(self.name):
            self.reload()
            mend_current(self.table)
            yield self

    def reload(self) -> None:
        """See the table and the recorded decisions as they are now; what was read of manifests stays true."""
        self.table = load_table(self.committer, self.name)
        lists = garbage.read_lists(self.files, self.table.location())
        held = [one for one in lists if one.holds(self.now)]
        self.waiting = tuple(one for one in lists if not one.holds(self.now))
        paths = (file.path for one in held for file in one.files)
        self.held_back = garbage.recorded_files(self.committer.iceberg).union(paths)

    def needed(self, stored: Sequence[StoredFile] = ()) -> set[str]:
        """Plain paths of all files that must stay; raises DataError where one of them is in no listing and gone."""
        reached = self.reader.files(self.table.metadata)
        if stored:
            self._check_listing(reached, stored)
        return {*reached, *self.held_back, *garbage.logged_metadata(self.table)}

    def _check_listing(self, reached: Mapping[str, TableFile], stored: Sequence[StoredFile]) -> None:
        """A listing that lacks what table snapshots reach is not to be trusted about what is garbage.

        Files that were committed after the listing are looked for one by one.
        """
        listed = {file.path for file in stored}
        missing = sorted(path for path in reached if path not in listed and not self.files.exists(path))
        if missing:
            raise DataError(
                f"upkeep of {self.name}: {len(missing)} files that table snapshots need are gone, {missing[0]} among "
                "them; nothing was removed. `lakehouse verify` shows which tables can still be read; restore the files"
            )

    def plan(self, keep_untagged: int, keep_tags: int) -> Expiry:
        """What an expiry would drop now."""
        return plan_expiry(
            self.table.metadata,
            self.name,
            keep_untagged=keep_untagged,
            keep_tags=keep_tags,
            now=self.now,
        )

    def expire(self, keep_untagged: int, keep_tags: int) -> tuple[Expiry, garbage.GarbageList | None]:
        """Write the list of what becomes garbage, then commit the expiry."""
        for _ in range(ATTEMPTS):
            plan = self.plan(keep_untagged, keep_tags)
            if plan.empty:
                return plan, None
            doomed = garbage.files_only_in(self.reader, self.table.metadata, set(plan.snapshots), self.held_back)
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
        doomed = {} if fresh is None else garbage.unneeded(fresh.files, self.held_back)
        doomed = self.own(doomed | self.judge(self.waiting, stored, orphan_age))
        self.files.remove(doomed)
        self.files.remove(found.path for found in (*self.waiting, *([fresh] if fresh else [])))
        return doomed

    def judge(
        self, waiting: Sequence[garbage.GarbageList], stored: list[StoredFile], orphan_age: timedelta | None
    ) -> dict[str, TableFile]:
        """Files of the lists and of the storage that nothing needs now."""
        if not waiting and not stored:
            return {}
        needed = self.needed(stored)
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


def open_work(committer: Committer, table: str, now: datetime | None) -> UpkeepWork:
    """A table and its files; raises UnknownNameError where there is none."""
    loaded = load_table(committer, table)
    files = files_of(committer, loaded)
    return UpkeepWork(committer, loaded, files, FileReader(loaded.io), now or system_now())


def mend_current(table: Table) -> None:
    """Let `CURRENT` catch up where a process died right after its commit; call it under the table's lock.

    Raises ConflictError where the catalog is older than `CURRENT`.
    """
    check_current(table)
    if read_current(table) != file_name(table.metadata_location):
        write_current(table)


def files_of(committer: Committer, table: Table) -> TableFiles:
    """The files of a table, with the committer's credentials."""
    return open_files(table.location(), {**committer.iceberg.properties, **table.io.properties})


def load_table(committer: Committer, table: str) -> Table:
    """A table as it is now; raises UnknownNameError where there is none."""
    try:
        return committer.iceberg.load_table(table)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise UnknownNameError(
            f"upkeep: table {table} does not exist; `lakehouse upkeep` without names goes over all tables"
        ) from error
