"""The committer: the one place that changes tables.

Data files are written first; then one lock per table is held around reload and commit, so writers wait instead of
failing. A replace is one table snapshot: no reader sees a partition empty in between. The catalog's own swap stays as
backstop against engines that do not know the lock; a commit that loses it is planned again. Running the same change
again adds nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from lakehouse.errors import ConflictError, DataError, InvariantError, UnavailableError
from lakehouse.logs import blank_secrets
from lakehouse.model.partition import Partition
from lakehouse.specs.loader import Catalog
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.changes import Append, Change, FileFacts, Plan, Replace, Restore
from lakehouse.tables.compaction import Announce, Compact
from lakehouse.tables.content import MODULUS
from lakehouse.tables.current import check_current, file_name, read_current, write_current
from lakehouse.tables.iceberg import LakehouseCatalog
from lakehouse.tables.layout import LayoutRules
from lakehouse.tables.locks import TableLocks
from lakehouse.tables.normalize import check_frame, mismatch
from lakehouse.tables.producer import LiveFiles, OutcomeUnknown, commit_files, key_in, live_files
from lakehouse.tables.recovery import require_no_lost_table
from lakehouse.tables.registry import ensure_table, unregistered_versions, versions_of
from lakehouse.tables.scan import scan_rows
from lakehouse.tables.split import Key, key_of, partition_of, split_frame

__all__ = ["Commit", "Committer", "DataFileInfo", "PartitionCommit", "read_current", "write_current"]
Register = Callable[["Committer", Sequence[SchemaSpec]], None]
ATTEMPTS = 20
SUMMARY_RUN = "lakehouse.run-id"
SUMMARY_OPERATION = "lakehouse.operation"


@dataclass(frozen=True, slots=True)
class DataFileInfo:
    """One data file of a partition."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """A partition as it is after a commit: all its rows, number of files, bytes, and content hash."""

    partition: Partition
    rows: int
    files: int
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What a call did to a table. `snapshot_id` is the one this call wrote, else the table's current one."""

    table: str
    snapshot_id: int | None
    changed: bool
    partitions: tuple[PartitionCommit, ...]


class Committer:
    """Appends to, replaces and restores partitions of registered tables; `register` hears of new schema versions first.

    Every method raises UnavailableError when the catalog's database or the store does not answer: running again
    finishes the work. ConflictError means that the table's lock is kept by somebody, that a partition carries delete
    files, or that another engine changes the table faster than a commit can be planned.
    """

    def __init__(
        self,
        iceberg: LakehouseCatalog,
        catalog: Catalog,
        locks: TableLocks,
        run_id: str,
        register: Register = lambda _, __: None,
    ) -> None:
        self.iceberg = iceberg
        self.catalog = catalog
        self.locks = locks
        self.run_id = run_id
        self._register = register
        self._facts: dict[str, FileFacts] = {}

    def table(self, name: str) -> Table:
        """The table `layer.name` as it is now; made or evolved from its registered schemas where needed."""
        specs = versions_of(self.catalog, name)
        with _reporting(name):
            try:
                found = self.iceberg.load_table(name)
                if not unregistered_versions(found, specs):
                    return found
            except NoSuchTableError:
                found = None
            with self.locks.hold(name):
                if found is not None:
                    found = self.iceberg.load_table(name)
                    check_current(found)
                else:
                    require_no_lost_table(self.iceberg, name)
                self._register(self, specs if found is None else unregistered_versions(found, specs))
                made = ensure_table(self.iceberg, self.catalog, name)
                write_current(made)
                return made

    def append(self, table: str, frame: pa.Table, *, id_column: str = "batch_id") -> Commit:
        """Add the rows of `frame` whose id is not yet in their partition, as one table snapshot.

        The ids are compared with the rows themselves, so this holds whatever became of earlier files and snapshots.
        """
        specs = versions_of(self.catalog, table)
        checked = check_frame(frame, specs)
        if id_column not in checked.column_names or checked.column(id_column).null_count:
            raise mismatch(specs[-1], id_column, "an id in every row", "none")
        change = Append(split_frame(checked, specs[-1]), id_column, self._facts_of(table, specs))
        return self._commit(table, change, {})

    def add(self, table: str, frame: pa.Table) -> Commit:
        """Add rows without looking for them, for a caller that holds the table's lock and has looked."""
        specs = versions_of(self.catalog, table)
        slices = split_frame(check_frame(frame, specs), specs[-1])
        return self._commit(table, Append(slices, None, self._facts_of(table, specs)), {})

    def replace(self, table: str, frame: pa.Table, partitions: Sequence[Partition]) -> Commit:
        """Make `partitions` hold exactly the rows of `frame`, as one table snapshot.

        A partition without rows in `frame` becomes empty; one whose content is the same already is left alone.
        Tables partitioned by source alone match `Partition.source`; unpartitioned ones are replaced as a whole.
        Raises DataError if `frame` has rows of a partition that is not named.
        """
        specs = versions_of(self.catalog, table)
        slices = split_frame(check_frame(frame, specs), specs[-1])
        named = {key_of(one, specs[-1]): one for one in reversed(partitions)}
        strangers = [one.key for one in slices if one.key not in named]
        if strangers:
            raise DataError(
                f"cannot replace partitions of {table}: the frame has rows of {strangers[0]}, which is not among "
                f"the {len(named)} partitions named; name it, or leave its rows out"
            )
        change = Replace(slices, sorted(named), self._facts_of(table, specs))
        return self._commit(table, change, named)

    def restore(self, table: str, partition: Partition, files: Sequence[str]) -> Commit:
        """Make `partition` hold the rows of earlier data `files` (copied to new names), as one table snapshot."""
        specs = versions_of(self.catalog, table)
        key = key_of(partition, specs[-1])
        return self._commit(table, Restore(key, files, self._facts_of(table, specs)), {key: partition})

    def compact(self, table: str, partitions: Sequence[Partition], rules: LayoutRules, announce: Announce) -> Commit:
        """Put the small files of `partitions` together, as one table snapshot; `announce` hears which files go.

        The rows stay the same, which is proven by count and content hash. Raises InvariantError where they would not.
        """
        specs = versions_of(self.catalog, table)
        named = {key_of(one, specs[-1]): one for one in reversed(partitions)}
        change = Compact(sorted(named), rules, self._facts_of(table, specs), announce)
        return self._commit(table, change, named)

    def files(self, table: str, partition: Partition) -> tuple[DataFileInfo, ...]:
        """The data files of a partition, by path."""
        key = key_of(partition, versions_of(self.catalog, table)[-1])
        found = self.table(table)
        with _reporting(table):
            live = live_files(found, [key]).files[key]
        infos = (DataFileInfo(one.file_path, one.record_count, one.file_size_in_bytes) for one in live)
        return tuple(sorted(infos, key=lambda one: one.path))

    def scan(
        self,
        table: str,
        partitions: Sequence[Partition] | None = None,
        columns: Sequence[str] | None = None,
        *,
        without: Collection[str] = (),
    ) -> pa.Table:
        """Rows of the table, of some partitions and columns where given; types as `columns.arrow_schema` has them.

        Data files in `without` (plain paths) are left out: those that are known to be gone.
        """
        specs = versions_of(self.catalog, table)
        keys = None if partitions is None else {key_of(one, specs[-1]) for one in partitions}
        found = self.table(table)
        with _reporting(table):
            return scan_rows(found, specs, keys, columns, without=without)

    def _facts_of(self, table: str, specs: tuple[SchemaSpec, ...]) -> FileFacts:
        return self._facts.setdefault(table, FileFacts(specs))

    def _commit(self, name: str, change: Change, named: Mapping[Key, Partition]) -> Commit:
        table = self.table(name)
        with _reporting(name):
            live = live_files(table, change.keys)
            work = _Work(name, change, table, live, change.plan(table, live))
            if work.plan.is_empty:
                self._mend_current(name, table)
            else:
                with self.locks.hold(name):
                    self._commit_locked(work)
            work.discard_unused()
            return work.describe(named, self._facts[name])

    def _commit_locked(self, work: _Work) -> None:
        properties = {SUMMARY_RUN: self.run_id, SUMMARY_OPERATION: work.change.operation, **work.change.fingerprint()}
        for attempt in range(ATTEMPTS):
            table = self.iceberg.load_table(work.name)
            if work.in_doubt is not None and table.metadata.snapshot_by_id(work.in_doubt) is not None:
                work.table = table
                write_current(table)
                return
            if attempt == 0:
                check_current(table)
            work.plan_for(table)
            if work.plan.is_empty:
                return
            work.check_new()
            try:
                plan, same = work.plan, work.change.operation == Compact.operation
                commit_files(work.table, work.live, plan.added, plan.removed, properties, keeps_rows=same)
            except CommitFailedException:
                time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))  # noqa: S311 (spreading writers, no secret)
                continue
            except OutcomeUnknown as unknown:
                work.in_doubt = unknown.snapshot_id
                continue
            write_current(work.table)
            return
        raise ConflictError(
            f"cannot commit to {work.name}: another engine changed the table {ATTEMPTS} times while this commit was "
            "planned; let its work on the table end, then run again"
        )

    def _mend_current(self, name: str, table: Table) -> None:
        """A process that died right after its commit left `CURRENT` behind; the run that repeats it catches up."""
        if read_current(table) != file_name(table.metadata_location):
            with self.locks.hold(name):
                now = self.iceberg.load_table(name)
                check_current(now)
                write_current(now)


@dataclass(slots=True)
class _Work:
    """One change on its way: the table it was planned for, what was live there, and the plan.

    `in_doubt` is the table snapshot that may have been committed while a server fell silent.
    """

    name: str
    change: Change
    table: Table
    live: LiveFiles
    plan: Plan
    in_doubt: int | None = None

    def plan_for(self, table: Table) -> None:
        """Plan again if the table has moved since the last plan."""
        self.table = table
        if table.metadata.current_snapshot_id != self.live.snapshot_id:
            self.live = live_files(table, self.change.keys)
            self.plan = self.change.plan(table, self.live)

    def check_new(self) -> None:
        """No data-file path is ever added twice: a path in an expired snapshot counts as garbage to other engines."""
        known = {one.file_path for files in self.live.files.values() for one in files}
        for one in self.plan.added:
            if one.file_path in known:
                raise InvariantError(
                    f"refused to add {one.file_path} to {self.name} a second time; report this as a bug"
                )
            known.add(one.file_path)

    def discard_unused(self) -> None:
        """Remove data files that were written for a plan that was not committed; upkeep finds those that stay."""
        if self.in_doubt is not None:
            return
        used = {one.file_path for one in self.plan.added}
        for one in self.change.written():
            if one.file_path not in used:
                with suppress(OSError):
                    self.table.io.delete(one.file_path)

    def describe(self, named: Mapping[Key, Partition], facts: FileFacts) -> Commit:
        """The commit as callers see it, with each partition as it is afterwards."""
        removed = {one.file_path for one in self.plan.removed}
        after = {key: [one for one in self.live.files[key] if one.file_path not in removed] for key in self.change.keys}
        for one in self.plan.added:
            after[key_in(one)].append(one)
        parts = []
        for key, files in after.items():
            rows, size = (sum(one.record_count for one in files), sum(one.file_size_in_bytes for one in files))
            checksum = f"{facts.sum_of(self.table, files) % MODULUS:032x}"
            parts.append(PartitionCommit(named.get(key) or partition_of(key), rows, len(files), size, checksum))
        snapshot_id = self.table.metadata.current_snapshot_id
        return Commit(self.name, snapshot_id, not self.plan.is_empty, tuple(parts))


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = blank_secrets(str(error.__cause__ or error).strip().splitlines()[0])
        raise UnavailableError(
            f"cannot work on table {name}: the Iceberg catalog's database does not answer ({reason}); "
            "start it, then run again: what is committed stays, what is not is made again"
        ) from error
    except OSError as error:
        reason = blank_secrets(str(error).strip().splitlines()[0]) if str(error).strip() else type(error).__name__
        raise UnavailableError(
            f"cannot work on table {name}: its store does not answer as it should ({reason}); "
            "start or mend it, then run again: what is committed stays, what is not is made again"
        ) from error
