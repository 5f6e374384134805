"""Upkeep of table after table: which partitions have too many small files, and their compaction, one commit a group.

Not here: how files lie best (`layout`), and how the rows are moved (`compaction`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from lakehouse.clock import system_now
from lakehouse.logs import get_log
from lakehouse.model.partition import Partition
from lakehouse.tables import garbage
from lakehouse.tables.layout import Layout, LayoutRules, plan_layout, time_field
from lakehouse.tables.producer import all_files
from lakehouse.tables.reach import Kind, TableFile
from lakehouse.tables.registry import versions_of
from lakehouse.tables.split import partition_of
from lakehouse.tables.storage import answering, plain_path
from lakehouse.tables.upkeep_work import PACKS, files_of, load_table, mend_current

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

OBSERVATION = timedelta(days=7)
GROUP_BYTES = 1 << 30
GROUP_PARTITIONS = 500


@dataclass(frozen=True, slots=True)
class PartitionCompaction:
    """One partition: its small files before and the files after, its rows and their content hash; bytes of the files.

    In a plan `files_after` is the least there will be, and `checksum` is empty.
    """

    partition: Partition
    files_before: int
    files_after: int
    rows: int
    bytes: int
    clustered: bool
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """Compaction of one table. `refused` are partitions that carry delete files of another engine."""

    table: str
    partitions: tuple[PartitionCompaction, ...]
    refused: tuple[Partition, ...]
    applied: bool
    commits: int
    seconds: float


def compact_tables(
    committer: Committer,
    tables: Iterable[str],
    rules: LayoutRules | None = None,
    *,
    partitions: Sequence[Partition] | None = None,
    observe: timedelta = OBSERVATION,
    apply: bool = True,
    now: datetime | None = None,
) -> list[CompactionReport]:
    """Put small files together in `tables`, or in some partitions of them; without `apply` only say what would be done.

    Old files stay for `observe`, and as long as a table snapshot needs them. Packs are left alone: they are evidence
    that nothing may remove. Raises UnknownNameError for a table that does not exist, ConflictError, DataError and
    UnavailableError as commits do.
    """
    wanted = None if partitions is None else set(partitions)
    reports = []
    for table in tables:
        if table == PACKS:
            continue
        with answering(table):
            report = _Job(committer, table, rules or LayoutRules(), observe, now or system_now()).run(wanted, apply)
        get_log().info("compaction", table=table, applied=apply, partitions=len(report.partitions))
        reports.append(report)
    return reports


@dataclass(frozen=True, slots=True)
class _Job:
    committer: Committer
    table: str
    rules: LayoutRules
    observe: timedelta
    now: datetime

    def run(self, wanted: set[Partition] | None, apply: bool) -> CompactionReport:
        began = time.perf_counter()
        loaded = load_table(self.committer, self.table)
        files, deletes = all_files(loaded)
        column = time_field(loaded, versions_of(self.committer.catalog, self.table)[-1])
        layouts: dict[Partition, tuple[Layout, list[DataFile]]] = {}
        refused = []
        for key in sorted(files):
            partition, layout = partition_of(key), plan_layout(files[key], key, column, self.rules)
            if not layout.pieces or (wanted is not None and partition not in wanted):
                continue
            if deletes & {key, ()}:
                refused.append(partition)
                continue
            layouts[partition] = layout, files[key]
        planned = {one: _planned(one, *found) for one, found in layouts.items()}
        groups = list(_groups(planned)) if apply else []
        done = [one for group in groups for one in self._compact(group, planned)]
        if apply and not groups:
            with self.committer.locks.hold(self.table):
                mend_current(load_table(self.committer, self.table))
        seconds = round(time.perf_counter() - began, 3)
        found = tuple(done if apply else planned.values())
        return CompactionReport(self.table, found, tuple(refused), apply, len(groups), seconds)

    def _compact(
        self, group: Sequence[Partition], planned: dict[Partition, PartitionCompaction]
    ) -> Iterator[PartitionCompaction]:
        commit = self.committer.compact(self.table, group, self.rules, self._hold)
        for one in commit.partitions:
            before = planned[one.partition]
            yield PartitionCompaction(
                one.partition, before.files_before, one.files, one.rows, one.bytes, before.clustered, one.checksum
            )

    def _hold(self, table: Table, files: Sequence[DataFile]) -> None:
        hold_files(self.committer, table, files, self.now, self.now + self.observe)


def hold_files(committer: Committer, table: Table, files: Sequence[DataFile], now: datetime, until: datetime) -> None:
    """Write down data files that a commit is about to drop, with the time until which upkeep leaves them alone."""
    listed = [TableFile(plain_path(one.file_path), Kind.DATA, one.file_size_in_bytes) for one in files]
    garbage.write_list(files_of(committer, table), table, listed, now, until)


def _planned(partition: Partition, layout: Layout, files: Sequence[DataFile]) -> PartitionCompaction:
    rows, size = sum(one.record_count for one in files), sum(one.file_size_in_bytes for one in files)
    left = len(files) - len(layout.files) + len(layout.pieces)
    return PartitionCompaction(partition, len(files), left, rows, size, layout.clustered)


def _groups(planned: dict[Partition, PartitionCompaction]) -> Iterator[list[Partition]]:
    """Partitions that share a commit: few commits for many small partitions, and bounded work lost with one."""
    group: list[Partition] = []
    size = 0
    for partition, one in planned.items():
        if group and (size + one.bytes > GROUP_BYTES or len(group) == GROUP_PARTITIONS):
            yield group
            group, size = [], 0
        group.append(partition)
        size += one.bytes
    if group:
        yield group
