"""Which files of a table nothing needs any more: after an expiry, on a list that a dead run left, and lying about.

Needed are the files that any table snapshot reaches, those that a recorded decision lists (a fix keeps its old files),
those on a list whose time has not come (compaction and retention leave their old files to be looked at for a while),
and metadata in the table's log. Not here: locks, commits and removal (`upkeep`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakehouse.model.ids import new_task_id
from lakehouse.tables.reach import FileReader, Kind, TableFile, line_of_main, metadata_files
from lakehouse.tables.storage import StoredFile, TableFiles, plain_path

DECISIONS = "meta.decisions"
LIST_PREFIX = "garbage-"
SUFFIXES = {
    ".metadata.json": Kind.METADATA,
    ".parquet": Kind.DATA,
    ".orc": Kind.DATA,
    ".puffin": Kind.DATA,
    ".stats": Kind.STATISTICS,
}


@dataclass(frozen=True, slots=True)
class GarbageList:
    """Files that a commit leaves to nobody, written down at `path` before it. With `due` they stay until then."""

    path: str
    files: tuple[TableFile, ...]
    due: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether the files must stay although nothing else needs them."""
        return self.due is not None and self.due > now


def files_only_in(
    reader: FileReader, metadata: TableMetadata, expired: Collection[int], recorded: Collection[str]
) -> dict[str, TableFile]:
    """Files that the `expired` table snapshots need and neither the others nor a recorded decision do."""
    gone = [s for s in metadata.snapshots if s.snapshot_id in expired]
    kept = [s for s in metadata.snapshots if s.snapshot_id not in expired]
    needed = reader.manifests(kept)
    manifests = {path: m for path, m in reader.manifests(gone).items() if path not in needed}
    garbage = metadata_files(metadata, gone, manifests)
    line = line_of_main(metadata)
    garbage |= _dropped_on_line(reader, line, expired, kept)
    apart = [s for s in gone if s.snapshot_id not in line]
    if apart:
        candidates = reader.live_files({p: m for p, m in reader.manifests(apart).items() if p in manifests})
        live = reader.data_files(metadata, kept) if candidates else {}
        garbage |= {path: file for path, file in candidates.items() if path not in live}
    return {path: file for path, file in garbage.items() if path not in recorded}


def _dropped_on_line(
    reader: FileReader,
    line: Mapping[int, Snapshot],
    expired: Collection[int],
    kept: Iterable[Snapshot],
) -> dict[str, TableFile]:
    """Files that were live in expired snapshots of the line and are in no kept one, from what each snapshot dropped.

    Reads the few manifests that list removals instead of every manifest that an expired snapshot rewrote.
    """
    kept_at = [s.sequence_number or 0 for s in kept]
    droppers = [s for s in line.values() if s.parent_snapshot_id in expired]
    garbage = {}
    for snapshot, dropped in reader.changes(droppers, ManifestEntryStatus.DELETED):
        dropped_at = snapshot.sequence_number or 0
        for entry in dropped:
            added_at = entry.added or 0
            if not any(added_at <= at < dropped_at for at in kept_at):
                garbage[entry.file.path] = entry.file
    return garbage


def recorded_files(iceberg: IcebergCatalog) -> frozenset[str]:
    """Plain paths of all data files that a decision lists under `files`: what a rollback would copy."""
    try:
        table = iceberg.load_table(DECISIONS)
    except NoSuchTableError:
        return frozenset()
    payloads = table.scan(selected_fields=("payload",)).to_arrow()["payload"]
    found: set[str] = set()
    for text in payloads.filter(pc.match_substring(payloads, '"files"')).to_pylist():
        found.update(_paths_in(json.loads(text)))
    return frozenset(found)


def _paths_in(payload: Any) -> Iterable[str]:
    """All paths under a key `files`, at any depth: lists of paths or of objects with a `path`."""
    if isinstance(payload, Mapping):
        for key, value in payload.items():
            if key == "files" and isinstance(value, list):
                yield from (plain_path(str(v.get("path") if isinstance(v, Mapping) else v)) for v in value)
            else:
                yield from _paths_in(value)
    elif isinstance(payload, list):
        for item in payload:
            yield from _paths_in(item)


def write_list(
    files: TableFiles, table: Table, garbage: Iterable[TableFile], now: datetime, due: datetime | None = None
) -> GarbageList:
    """Write down what a commit is about to leave to nobody, to be removed at once or not before `due`."""
    path = f"{plain_path(table.location())}/metadata/{LIST_PREFIX}{new_task_id(now)}.json"
    found = GarbageList(path, tuple(garbage), due)
    rows = [[file.path, file.kind.value, file.bytes] for file in found.files]
    value = {"written": now.isoformat(), "due": due.isoformat() if due else None, "files": rows}
    files.write(path, json.dumps(value, ensure_ascii=False).encode())
    return found


def read_lists(files: TableFiles, location: str) -> list[GarbageList]:
    """Lists that earlier runs wrote and did not finish, and those whose time has not come."""
    found = []
    for stored in files.list(f"{plain_path(location)}/metadata"):
        name = stored.path.rpartition("/")[2]
        if name.startswith(LIST_PREFIX) and name.endswith(".json"):
            value = json.loads(files.read(stored.path))
            due = datetime.fromisoformat(value["due"]) if value.get("due") else None
            listed = tuple(TableFile(path, Kind(kind), size) for path, kind, size in value["files"])
            found.append(GarbageList(stored.path, listed, due))
    return found


def unneeded(listed: Iterable[TableFile], needed: Collection[str]) -> dict[str, TableFile]:
    """Of files that became garbage once, those that nothing needs now."""
    return {file.path: file for file in listed if file.path not in needed}


def orphans(stored: Iterable[StoredFile], needed: Collection[str], before: datetime) -> dict[str, TableFile]:
    """Files of known kinds, written before `before`, that nothing needs: what failed commits left."""
    found = {}
    for file in stored:
        kind = kind_of(file.path)
        if kind is not None and file.path not in needed and file.written < before:
            found[file.path] = TableFile(file.path, kind, file.bytes)
    return found


def kind_of(path: str) -> Kind | None:
    """What a file is by its name; None for files that upkeep leaves alone."""
    name = path.rpartition("/")[2]
    if name.endswith(".avro"):
        return Kind.LIST if name.startswith("snap-") else Kind.MANIFEST
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def logged_metadata(table: Table) -> frozenset[str]:
    """Plain paths of the metadata files that the table's log names, the current one included."""
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    return frozenset(plain_path(location) for location in (*log, table.metadata_location))
