"""Which files the table snapshots of a table need: manifest lists, manifests, data and delete files, statistics.

Manifests never change, so one reader decodes each of them once, whatever is asked. Not here: removing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakehouse.errors import DataError
from lakehouse.tables.storage import plain_path

_T = TypeVar("_T")
_R = TypeVar("_R")
READERS = 8


class Kind(StrEnum):
    """What a file of a table is."""

    DATA = "data"
    MANIFEST = "manifest"
    LIST = "manifest list"
    STATISTICS = "statistics"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file by plain path; `bytes` is 0 where the metadata does not say."""

    path: str
    kind: Kind
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a manifest: a file, whether it was added, is there, or was dropped, by whom, and since when.

    `added` is the sequence number of the table snapshot that added the file, where the manifest says it.
    """

    file: TableFile
    status: ManifestEntryStatus
    snapshot_id: int | None
    added: int | None


class FileReader:
    """Reads what table snapshots list, each manifest list and manifest once."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._lists: dict[str, dict[str, ManifestFile]] = {}
        self._entries: dict[str, tuple[Entry, ...]] = {}

    def manifests(self, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
        """All manifests of the snapshots, by plain path; raises DataError where a manifest list is missing."""
        snapshots = list(snapshots)
        missing = [s for s in snapshots if s.manifest_list and s.manifest_list not in self._lists]
        for snapshot, found in zip(missing, _parallel(self._read_list, missing), strict=True):
            self._lists[snapshot.manifest_list or ""] = found
        merged: dict[str, ManifestFile] = {}
        for snapshot in snapshots:
            merged.update(self._lists.get(snapshot.manifest_list or "", {}))
        return merged

    def live_files(self, manifests: Mapping[str, ManifestFile]) -> dict[str, TableFile]:
        """All files that the manifests hold as live, by plain path; raises DataError where a manifest is missing."""
        gone = ManifestEntryStatus.DELETED
        return {entry.file.path: entry.file for entry in self._entries_of(manifests) if entry.status != gone}

    def changes(self, snapshots: Iterable[Snapshot], status: ManifestEntryStatus) -> list[tuple[Snapshot, list[Entry]]]:
        """For each snapshot the files that it added or dropped; only manifests that it wrote itself are read."""
        snapshots = list(snapshots)
        written = [_written_by(snapshot, self.manifests([snapshot]), status) for snapshot in snapshots]
        self._entries_of({path: manifest for manifests in written for path, manifest in manifests.items()})
        found = []
        for snapshot, manifests in zip(snapshots, written, strict=True):
            entries = self._entries_of(manifests)
            own = [e for e in entries if e.status == status and e.snapshot_id == snapshot.snapshot_id]
            found.append((snapshot, own))
        return found

    def data_files(self, metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> dict[str, TableFile]:
        """Files with rows that are live in any of the snapshots, and in any on the line of main, by plain path.

        On the line they are what its ends hold and what each snapshot in between added: few manifests to read, where
        every replace wrote some anew.
        """
        line = list(line_of_main(metadata).values())
        if not line:
            return self.live_files(self.manifests(snapshots))
        on_line = {snapshot.snapshot_id for snapshot in line}
        whole = [line[0], line[-1], *(s for s in snapshots if s.snapshot_id not in on_line)]
        files = self.live_files(self.manifests(whole))
        for _, added in self.changes(line[1:], ManifestEntryStatus.ADDED):
            files.update((entry.file.path, entry.file) for entry in added)
        return files

    def files(self, metadata: TableMetadata) -> dict[str, TableFile]:
        """Every file that the table snapshots need, by plain path."""
        manifests = self.manifests(metadata.snapshots)
        return self.data_files(metadata, metadata.snapshots) | metadata_files(metadata, metadata.snapshots, manifests)

    def _read_list(self, snapshot: Snapshot) -> dict[str, ManifestFile]:
        found = _readable(lambda: snapshot.manifests(self._io), snapshot.manifest_list or "")
        return {plain_path(manifest.manifest_path): manifest for manifest in found}

    def _entries_of(self, manifests: Mapping[str, ManifestFile]) -> list[Entry]:
        missing = {path: manifest for path, manifest in manifests.items() if path not in self._entries}
        for path, found in zip(missing, _parallel(self._read_entries, missing.values()), strict=True):
            self._entries[path] = found
        return [entry for path in manifests for entry in self._entries[path]]

    def _read_entries(self, manifest: ManifestFile) -> tuple[Entry, ...]:
        entries = _readable(
            lambda: manifest.fetch_manifest_entry(self._io, discard_deleted=False), manifest.manifest_path
        )
        return tuple(
            Entry(
                TableFile(plain_path(entry.data_file.file_path), Kind.DATA, entry.data_file.file_size_in_bytes),
                entry.status,
                entry.snapshot_id,
                entry.file_sequence_number,
            )
            for entry in entries
        )


def line_of_main(metadata: TableMetadata) -> dict[int, Snapshot]:
    """The unbroken line of table snapshots from main's newest back, oldest first; empty where another line exists.

    With one line, every table snapshot on it descends from all before it, and those not on it are older than all of
    it: a file that a snapshot of the line dropped can be live only in older ones.
    """
    line: dict[int, Snapshot] = {}
    snapshot = metadata.current_snapshot()
    while snapshot is not None:
        line[snapshot.snapshot_id] = snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)
    if not line or metadata.format_version < 2:
        return {}
    oldest = min(s.sequence_number or 0 for s in line.values())
    apart = [s for s in metadata.snapshots if s.snapshot_id not in line]
    if any((s.sequence_number or 0) >= oldest for s in apart):
        return {}
    return dict(reversed(line.items()))


def _written_by(
    snapshot: Snapshot, manifests: Mapping[str, ManifestFile], status: ManifestEntryStatus
) -> dict[str, ManifestFile]:
    """Manifests that the snapshot wrote and that say they have such entries, or do not say."""
    found = {}
    for path, manifest in manifests.items():
        counts = {
            ManifestEntryStatus.ADDED: manifest.added_files_count,
            ManifestEntryStatus.DELETED: manifest.deleted_files_count,
        }
        if manifest.added_snapshot_id == snapshot.snapshot_id and counts[status] != 0:
            found[path] = manifest
    return found


def metadata_files(
    metadata: TableMetadata, snapshots: Iterable[Snapshot], manifests: Mapping[str, ManifestFile]
) -> dict[str, TableFile]:
    """Manifest lists and statistics of the snapshots, and the manifests, by plain path."""
    snapshots = list(snapshots)
    ids = {snapshot.snapshot_id for snapshot in snapshots}
    files = [TableFile(path, Kind.MANIFEST, manifest.manifest_length) for path, manifest in manifests.items()]
    files += [TableFile(plain_path(s.manifest_list), Kind.LIST) for s in snapshots if s.manifest_list]
    for statistics in (*metadata.statistics, *metadata.partition_statistics):
        if statistics.snapshot_id in ids:
            path = plain_path(statistics.statistics_path)
            files.append(TableFile(path, Kind.STATISTICS, statistics.file_size_in_bytes))
    return {file.path: file for file in files}


def _readable(read: Callable[[], list[_R]], location: str) -> list[_R]:
    try:
        return read()
    except FileNotFoundError as error:
        raise DataError(
            f"upkeep needs {location}, which a table snapshot lists and which is gone; nothing was removed. "
            "`lakehouse verify` shows which tables can still be read; restore the file from a backup"
        ) from error


def _parallel(read: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    items = list(items)
    if len(items) < 2:
        return [read(item) for item in items]
    with ThreadPoolExecutor(min(READERS, len(items)), thread_name_prefix="upkeep") as pool:
        return list(pool.map(read, items))
