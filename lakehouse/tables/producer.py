"""The seam to PyIceberg's private calls: reading live files, writing data files, producing one table snapshot.

PyIceberg's public writes split frames slowly, make two snapshots for an overwrite, and retry on their own after a
conflict. What is used here instead is covered by contract tests and by a pinned version.
"""

# ruff: noqa: SLF001 (this module exists to keep private calls in one place)

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from cachetools import LRUCache
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, In
from pyiceberg.expressions.visitors import inclusive_projection, manifest_evaluator
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_int
from sqlalchemy.exc import SQLAlchemyError

from lakehouse.errors import ConflictError
from lakehouse.tables.split import EPOCH, Key

RECENT_ENTRIES = 40_000


class _Entries:
    """The live entries of one manifest, and where those of each partition are."""

    __slots__ = ("by_key", "entries")

    def __init__(self, entries: list[ManifestEntry]) -> None:
        self.entries = entries
        self.by_key: dict[Key, list[ManifestEntry]] = {}
        for entry in entries:
            self.by_key.setdefault(key_in(entry.data_file), []).append(entry)


_recent: LRUCache[str, _Entries] = LRUCache(RECENT_ENTRIES, getsizeof=lambda one: len(one.entries) + 1)
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """What a table snapshot holds of some partitions: data files by key, and every manifest that was read for it."""

    snapshot_id: int | None
    files: Mapping[Key, list[DataFile]]
    manifests: Mapping[str, list[ManifestEntry]]


def live_files(table: Table, keys: Collection[Key]) -> LiveFiles:
    """The current data files of partitions; raises ConflictError for a partition that carries delete files."""
    snapshot = table.current_snapshot()
    files: dict[Key, list[DataFile]] = {key: [] for key in keys}
    if snapshot is None or not keys:
        return LiveFiles(snapshot.snapshot_id if snapshot else None, files, {})
    evaluate = manifest_evaluator(
        table.spec(), table.schema(), inclusive_projection(table.schema(), table.spec())(key_filter(table, keys))
    )
    chosen = [one for one in snapshot.manifests(table.io) if evaluate(one)]
    manifests: dict[str, list[ManifestEntry]] = {}
    for manifest, held in zip(chosen, _read_manifests(table, chosen), strict=True):
        if manifest.content == ManifestContent.DELETES:
            _refuse_deletes(table, held, files)
            continue
        manifests[manifest.manifest_path] = held.entries
        for key in held.by_key.keys() & files.keys():
            files[key].extend(entry.data_file for entry in held.by_key[key])
    return LiveFiles(snapshot.snapshot_id, files, manifests)


def all_files(table: Table) -> tuple[dict[Key, list[DataFile]], set[Key]]:
    """All live data files by partition, and the partitions that carry delete files (`()` stands for all of them)."""
    entries, deletes = all_entries(table)
    return {key: [one.data_file for one in some] for key, some in entries.items()}, deletes


def all_entries(table: Table) -> tuple[dict[Key, list[ManifestEntry]], set[Key]]:
    """As `all_files`, with the table snapshot and the sequence number that added each file."""
    snapshot = table.current_snapshot()
    files: dict[Key, list[ManifestEntry]] = {}
    deletes: set[Key] = set()
    manifests = snapshot.manifests(table.io) if snapshot else []
    for manifest, held in zip(manifests, _read_manifests(table, manifests), strict=True):
        if manifest.content == ManifestContent.DELETES:
            deletes |= held.by_key.keys()
            continue
        for key, entries in held.by_key.items():
            files.setdefault(key, []).extend(entries)
    return files, deletes


def _read_manifests(table: Table, manifests: Sequence[ManifestFile]) -> list[_Entries]:
    """Live entries of manifests. The files never change, so entries of recent ones are kept in memory."""
    with _guard:
        found = {one.manifest_path: _recent[one.manifest_path] for one in manifests if one.manifest_path in _recent}
    missing = [one for one in manifests if one.manifest_path not in found]
    each = ExecutorFactory.get_or_create().map if len(missing) > 1 else map
    for manifest, entries in zip(missing, each(lambda one: one.fetch_manifest_entry(table.io), missing), strict=True):
        found[manifest.manifest_path] = held = _Entries(entries)
        if len(entries) < RECENT_ENTRIES // 4:
            with _guard:
                _recent[manifest.manifest_path] = held
    return [found[one.manifest_path] for one in manifests]


def key_in(data_file: DataFile) -> Key:
    """The partition key of a data file as it stands in a manifest."""
    return tuple(
        EPOCH + timedelta(days=value) if position == 1 and isinstance(value, int) else value
        for position, value in enumerate(data_file.partition[number] for number in range(len(data_file.partition)))
    )


def key_filter(table: Table, keys: Collection[Key]) -> BooleanExpression:
    names = [one.name for one in table.spec().fields]
    if not names or not keys:
        return AlwaysTrue()
    columns = zip(*keys, strict=True)

    parts: list[BooleanExpression] = []
    for name, values in zip(names, columns, strict=True):
        parts.append(In(term=name, literals=set(values)))
    return parts[0] if len(parts) == 1 else And(*parts)


def _refuse_deletes(table: Table, deletes: _Entries, wanted: Mapping[Key, list[DataFile]]) -> None:
    for key in deletes.by_key.keys() & {*wanted, ()}:
        name = ".".join(table.name())
        raise ConflictError(
            f"partition {'/'.join(map(str, key)) or 'all'} of {name} carries delete files: another engine deleted "
            f"rows; make that part of the data (in Trino: ALTER TABLE {name} EXECUTE optimize), then run again"
        )


class OneChange(Transaction):
    """A transaction of one snapshot. The base class copies all metadata each time they are looked at."""

    @property
    def table_metadata(self) -> TableMetadata:
        return super().table_metadata if self._updates else self._table.metadata


class ChangeFiles(_SnapshotProducer["ChangeFiles"]):
    """One table snapshot that adds and removes data files, planned from manifests that were read once."""

    def __init__(
        self,
        operation: Operation,
        transaction: Transaction,
        live: LiveFiles,
        properties: dict[str, str],
        *,
        keeps_rows: bool = False,
    ) -> None:
        super().__init__(operation, transaction, transaction._table.io, snapshot_properties=properties)
        self._live = live
        self._keeps_rows = keeps_rows
        self.merged_away: list[str] = []

    def _build_delete_files_partition_predicate(self) -> None:
        """Nothing to prune by: what is deleted is known from the plan."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """Other engines need not look at a table snapshot that changes no rows; PyIceberg counts none as such."""
        found = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **found.additional_properties) if self._keeps_rows else found

    def _deleted_entries(self) -> list[ManifestEntry]:
        if not self._deleted_data_files:
            return []
        return [
            self._with_status(entry, ManifestEntryStatus.DELETED, self._snapshot_id)
            for entries in self._live.manifests.values()
            for entry in entries
            if entry.data_file in self._deleted_data_files
        ]

    def _existing_manifests(self) -> list[ManifestFile]:
        snapshot = self._transaction.table_metadata.snapshot_by_name(self._target_branch or "main")
        if snapshot is None:
            return []
        kept: list[ManifestFile] = []
        for manifest in snapshot.manifests(self._io):
            if manifest.content == ManifestContent.DATA:
                kept.extend(self._without_deleted(manifest))
            else:
                kept.append(manifest)
        return kept

    def _without_deleted(self, manifest: ManifestFile) -> list[ManifestFile]:
        if not (manifest.has_added_files() or manifest.has_existing_files()):
            return []
        entries = self._live.manifests.get(manifest.manifest_path) if self._deleted_data_files else None
        if not entries:
            return [manifest]
        left = [entry for entry in entries if entry.data_file not in self._deleted_data_files]
        if len(left) == len(entries):
            return [manifest]
        if not left:
            return []
        with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
            for entry in left:
                writer.add_entry(self._with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id))
        return [writer.to_manifest_file()]

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Merge by size, so that an entry is written anew about three times and not with every tenth commit.

        Small manifests are merged once there are enough of them, middling ones once they fill a whole one.
        """
        metadata = self._transaction.table_metadata
        target = _number(metadata.properties, "MANIFEST_TARGET_SIZE_BYTES")
        small: list[ManifestFile] = []
        middling: list[ManifestFile] = []
        rest: list[ManifestFile] = []
        for one in manifests:
            if one.content != ManifestContent.DATA or one.partition_spec_id != metadata.default_spec_id:
                rest.append(one)
            elif one.manifest_length < target // 8:
                small.append(one)
            else:
                (middling if one.manifest_length < target // 2 else rest).append(one)
        if len(small) >= _number(metadata.properties, "MANIFEST_MIN_MERGE_COUNT"):
            small = self._merge(small, target)
        if sum(one.manifest_length for one in middling) >= target:
            middling = self._merge(middling, target)
        final = [*small, *middling, *rest]
        kept = {one.manifest_path for one in final}
        self.merged_away = [path for path in self._written_manifests if path not in kept]
        return final

    def _merge(self, manifests: list[ManifestFile], target: int) -> list[ManifestFile]:
        """One manifest for each run of manifests that fits into `target` bytes."""
        bins: list[list[ManifestFile]] = [[]]
        for one in manifests:
            if bins[-1] and sum(other.manifest_length for other in bins[-1]) + one.manifest_length > target:
                bins.append([])
            bins[-1].append(one)
        merger = _ManifestMergeManager(
            target_size_bytes=target, min_count_to_merge=2, merge_enabled=True, snapshot_producer=self
        )
        return [
            members[0] if len(members) == 1 else merger._create_manifest(members[0].partition_spec_id, members)
            for members in bins
        ]

    @staticmethod
    def _with_status(entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


class OutcomeUnknown(Exception):
    """A commit may have landed or not; `snapshot_id` tells, once the table can be loaded again."""

    def __init__(self, snapshot_id: int) -> None:
        self.snapshot_id = snapshot_id
        super().__init__(f"whether table snapshot {snapshot_id} was committed is not known")


def _number(properties: Mapping[str, str], name: str) -> int:
    value = property_as_int(
        dict(properties), getattr(TableProperties, name), getattr(TableProperties, f"{name}_DEFAULT")
    )
    return int(value or 0)


def commit_files(
    table: Table,
    live: LiveFiles,
    added: Sequence[DataFile],
    removed: Iterable[DataFile],
    properties: Mapping[str, str],
    *,
    keeps_rows: bool = False,
) -> int:
    """Commit one table snapshot that adds and removes data files; returns its id. `live` must come from `table`.

    Raises CommitFailedException, with nothing changed and nothing left behind but data files, if the table has moved,
    and OutcomeUnknown if a server fell silent while the commit was on its way.
    """
    removed = list(removed)
    change = OneChange(table)
    operation = Operation.OVERWRITE if removed else Operation.APPEND
    producer = ChangeFiles(operation, change, live, dict(properties), keeps_rows=keeps_rows)
    for data_file in added:
        producer.append_data_file(data_file)
    for data_file in removed:
        producer.delete_data_file(data_file)
    return swap(table, change, producer)


def swap(table: Table, change: OneChange, producer: ChangeFiles) -> int:
    """Commit what a producer holds; raises as `commit_files` does."""
    producer.commit()
    requirements = (*change._requirements, AssertTableUUID(uuid=table.metadata.table_uuid))
    try:
        table._do_commit(updates=change._updates, requirements=requirements)
    except CommitFailedException:
        producer._clean_all_uncommitted()
        raise
    except (SQLAlchemyError, OSError) as error:
        raise OutcomeUnknown(producer.snapshot_id) from error
    for path in producer.merged_away:
        with suppress(OSError):
            table.io.delete(path)
    return producer.snapshot_id
