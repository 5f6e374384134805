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
class DroppedFile:
    """A file that a table snapshot removed; `added` is the sequence number of the one that added it."""

    file: TableFile
    added: int | None


class FileReader:
    """Reads what table snapshots list, each manifest list and manifest once."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._lists: dict[str, dict[str, ManifestFile]] = {}
        self._live: dict[str, tuple[TableFile, ...]] = {}

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
        missing = {path: manifest for path, manifest in manifests.items() if path not in self._live}
        for path, found in zip(missing, _parallel(self._read_live, missing.values()), strict=True):
            self._live[path] = found
        return {file.path: file for path in manifests for file in self._live[path]}

    def dropped_files(self, snapshots: Iterable[Snapshot]) -> list[tuple[Snapshot, list[DroppedFile]]]:
        """For each snapshot the files that it, and none before it, removed; only manifests it wrote are read."""
        snapshots = list(snapshots)
        return list(zip(snapshots, _parallel(self._read_dropped, snapshots), strict=True))

    def files(self, metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> dict[str, TableFile]:
        """Every file that the snapshots need, by plain path."""
        snapshots = list(snapshots)
        manifests = self.manifests(snapshots)
        return self.live_files(manifests) | metadata_files(metadata, snapshots, manifests)

    def _read_list(self, snapshot: Snapshot) -> dict[str, ManifestFile]:
        found = _readable(lambda: snapshot.manifests(self._io), snapshot.manifest_list or "")
        return {plain_path(manifest.manifest_path): manifest for manifest in found}

    def _read_live(self, manifest: ManifestFile) -> tuple[TableFile, ...]:
        entries = _readable(
            lambda: manifest.fetch_manifest_entry(self._io, discard_deleted=True), manifest.manifest_path
        )
        return tuple(_data_file(entry.data_file.file_path, entry.data_file.file_size_in_bytes) for entry in entries)

    def _read_dropped(self, snapshot: Snapshot) -> list[DroppedFile]:
        dropped = []
        for manifest in self.manifests([snapshot]).values():
            if manifest.added_snapshot_id != snapshot.snapshot_id or manifest.deleted_files_count == 0:
                continue
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=False):
                if entry.status == ManifestEntryStatus.DELETED and entry.snapshot_id == snapshot.snapshot_id:
                    file = _data_file(entry.data_file.file_path, entry.data_file.file_size_in_bytes)
                    dropped.append(DroppedFile(file, entry.file_sequence_number))
        return dropped


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


def _data_file(location: str, size: int) -> TableFile:
    return TableFile(plain_path(location), Kind.DATA, size)


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
