"""Manifests rewritten in partition order, so that planning a query of one source reads few of them.

Appends leave manifests that each know some days of all sources. A rewrite changes no data file and no row: it is one
table snapshot whose manifests hold the same entries. Not here: merging small manifests, which every commit does.
"""

# ruff: noqa: SLF001 (a snapshot producer of PyIceberg, see `producer`)

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from lakehouse.errors import ConflictError
from lakehouse.logs import get_log
from lakehouse.tables.current import write_current
from lakehouse.tables.producer import ChangeFiles, LiveFiles, OneChange, OutcomeUnknown, key_in, swap
from lakehouse.tables.storage import answering
from lakehouse.tables.upkeep_work import load_table, mend_current

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

LEAST = 10
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class ManifestReport:
    """Manifests of one table before and after; `overlapping` shared sources with another one. Bytes are of all."""

    table: str
    before: int
    after: int
    overlapping: int
    bytes: int
    applied: bool
    seconds: float


def rewrite_manifests(committer: Committer, tables: Iterable[str], *, apply: bool = True) -> list[ManifestReport]:
    """Rewrite the manifests of those tables whose manifests overlap or are many; `apply=False` says which.

    A report has equal numbers where nothing is to be done. Raises UnknownNameError for a table that does not exist,
    ConflictError where another engine keeps changing it.
    """
    reports = []
    for table in tables:
        with answering(table):
            report = _rewrite_one(committer, table, apply)
        get_log().info("manifests", table=table, applied=apply, before=report.before, after=report.after)
        reports.append(report)
    return reports


def _rewrite_one(committer: Committer, name: str, apply: bool) -> ManifestReport:
    began = time.perf_counter()
    table = load_table(committer, name)
    found = _data_manifests(table)
    size, overlapping, wanted = sum(one.manifest_length for one in found), _overlapping(found), len(found)
    if _needs_rewrite(found, overlapping, _target(table)):
        wanted = _ideal(size, _target(table))
        if apply:
            wanted = _commit(committer, name)
    elif apply:
        with committer.locks.hold(name):
            mend_current(load_table(committer, name))
    seconds = round(time.perf_counter() - began, 3)
    return ManifestReport(name, len(found), wanted, overlapping, size, apply, seconds)


def _commit(committer: Committer, name: str) -> int:
    properties = {"lakehouse.run-id": committer.run_id, "lakehouse.operation": "rewrite-manifests"}
    with committer.locks.hold(name):
        for _ in range(ATTEMPTS):
            table = load_table(committer, name)
            mend_current(table)
            change = OneChange(table)
            try:
                swap(table, change, _Rewrite(change, properties))
            except CommitFailedException:
                continue
            except OutcomeUnknown as unknown:
                raise unknown.__cause__ or unknown from None
            write_current(table)
            return len(_data_manifests(table))
    raise ConflictError(
        f"manifests of {name}: another engine changed the table {ATTEMPTS} times in a row; run it again"
    )


class _Rewrite(ChangeFiles):
    """One table snapshot with the same entries in partition order."""

    def __init__(self, change: OneChange, properties: dict[str, str]) -> None:
        super().__init__(Operation.OVERWRITE, change, LiveFiles(None, {}, {}), properties, keeps_rows=True)

    def _existing_manifests(self) -> list[ManifestFile]:
        snapshot = self._transaction.table_metadata.current_snapshot()
        manifests = snapshot.manifests(self._io) if snapshot else []
        mine = [one for one in manifests if self._is_ours(one)]
        entries = [entry for one in mine for entry in one.fetch_manifest_entry(self._io)]
        entries.sort(key=lambda entry: (key_in(entry.data_file), entry.data_file.file_path))
        size = sum(one.manifest_length for one in mine)
        target = _target(self._transaction._table)
        count = _ideal(size, target)
        step = -(-len(entries) // count)
        rewritten = [self._write(entries[start : start + step]) for start in range(0, len(entries), step or 1)]
        return [*rewritten, *(one for one in manifests if not self._is_ours(one))]

    def _is_ours(self, manifest: ManifestFile) -> bool:
        default = self._transaction.table_metadata.default_spec_id
        return manifest.content == ManifestContent.DATA and manifest.partition_spec_id == default

    def _write(self, entries: Sequence[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self._transaction.table_metadata.spec()) as writer:
            for entry in entries:
                writer.add_entry(self._with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id))
        return writer.to_manifest_file()

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        return manifests


def _data_manifests(table: Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    found = snapshot.manifests(table.io) if snapshot else []
    return [one for one in found if one.content == ManifestContent.DATA]


def _needs_rewrite(found: Sequence[ManifestFile], overlapping: int, target: int) -> bool:
    size = sum(one.manifest_length for one in found)
    return len(found) >= LEAST and (overlapping > len(found) / 4 or len(found) > 2 * _ideal(size, target))


def _overlapping(found: Sequence[ManifestFile]) -> int:
    """How many manifests begin with a source that lies within the sources of an earlier one."""
    bounds = [one.partitions[0] for one in found if one.partitions]
    ranges = sorted(
        (bytes(one.lower_bound), bytes(one.upper_bound)) for one in bounds if one.lower_bound and one.upper_bound
    )
    count, reached = 0, b""
    for lower, upper in ranges:
        count += lower < reached
        reached = max(reached, upper)
    return count


def _target(table: Table) -> int:
    return int(table.properties.get("commit.manifest.target-size-bytes", 8 << 20))


def _ideal(size: int, target: int) -> int:
    return max(1, -(-size // target))
