"""The seam to PyIceberg's private calls: reading live files, writing data files, producing one table snapshot.

PyIceberg's public writes split frames slowly, make two snapshots for an overwrite, and retry on their own after a
conflict. What is used here instead is covered by contract tests and by a pinned version.
"""

# ruff: noqa: SLF001 (this module exists to keep private calls in one place)

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, In
from pyiceberg.expressions.visitors import inclusive_projection, manifest_evaluator
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
    write_file,
)
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table, TableProperties, Transaction, WriteTask
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _SnapshotProducer
from pyiceberg.typedef import Record
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_int
from sqlalchemy.exc import SQLAlchemyError

from lakehouse.errors import ConflictError
from lakehouse.tables.split import Key

EPOCH = date(1970, 1, 1)


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
    if snapshot is None:
        return LiveFiles(None, files, {})
    evaluate = manifest_evaluator(
        table.spec(), table.schema(), inclusive_projection(table.schema(), table.spec())(key_filter(table, keys))
    )
    chosen = [one for one in snapshot.manifests(table.io) if evaluate(one)]
    read = ExecutorFactory.get_or_create().map(lambda one: one.fetch_manifest_entry(table.io), chosen)
    manifests: dict[str, list[ManifestEntry]] = {}
    for manifest, entries in zip(chosen, read, strict=True):
        for entry in entries:
            key = key_in(entry.data_file)
            if manifest.content == ManifestContent.DELETES:
                _refuse_deletes(table, key, files)
            elif key in files:
                files[key].append(entry.data_file)
        if manifest.content == ManifestContent.DATA:
            manifests[manifest.manifest_path] = entries
    return LiveFiles(snapshot.snapshot_id, files, manifests)


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


def _refuse_deletes(table: Table, key: Key, wanted: Mapping[Key, list[DataFile]]) -> None:
    if key in wanted or not key:
        name = ".".join(table.name())
        raise ConflictError(
            f"partition {'/'.join(map(str, key)) or 'all'} of {name} carries delete files: another engine deleted "
            f"rows; make that part of the data (in Trino: ALTER TABLE {name} EXECUTE optimize), then run again"
        )


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file to write: rows of one partition under a name of its own (without suffix)."""

    key: Key
    frame: pa.Table
    name: str


@dataclass(frozen=True)
class _NamedTask(WriteTask):
    name: str = field(default="")

    def generate_data_file_filename(self, extension: str) -> str:
        return f"{self.name}.{extension}"


def write_files(table: Table, files: Sequence[NewFile]) -> list[DataFile]:
    """Write Parquet files below their partition's folder; nothing refers to them yet."""
    if not files:
        return []
    metadata = table.metadata
    schema = pyarrow_to_schema(files[0].frame.schema, name_mapping=table.schema().name_mapping)
    tasks = (
        _NamedTask(
            write_uuid=None,  # type: ignore[arg-type]
            task_id=number,
            schema=schema,
            record_batches=one.frame.to_batches(),
            partition_key=partition_key(table, one.key),
            name=one.name,
        )
        for number, one in enumerate(files)
    )
    return list(write_file(table.io, metadata, tasks))


def partition_key(table: Table, key: Key) -> PartitionKey | None:
    """PyIceberg's form of a key; None for a table without partitions."""
    spec = table.spec()
    if not spec.fields:
        return None
    values = [PartitionFieldValue(one, value) for one, value in zip(spec.fields, key, strict=True)]
    return PartitionKey(values, spec, table.schema())


class _OneChange(Transaction):
    """A transaction of one snapshot. The base class copies all metadata each time they are looked at."""

    @property
    def table_metadata(self) -> TableMetadata:
        return super().table_metadata if self._updates else self._table.metadata


class _ChangeFiles(_SnapshotProducer["_ChangeFiles"]):
    """One table snapshot that adds and removes data files, planned from manifests that were read once."""

    def __init__(
        self, operation: Operation, transaction: Transaction, live: LiveFiles, properties: dict[str, str]
    ) -> None:
        super().__init__(operation, transaction, transaction._table.io, snapshot_properties=properties)
        self._live = live
        self.merged_away: list[str] = []

    def _build_delete_files_partition_predicate(self) -> None:
        """Nothing to prune by: what is deleted is known from the plan."""

    def _deleted_entries(self) -> list[ManifestEntry]:
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
        entries = self._live.manifests.get(manifest.manifest_path, [])
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
        properties = self._transaction.table_metadata.properties
        merger = _ManifestMergeManager(
            target_size_bytes=_number(properties, "MANIFEST_TARGET_SIZE_BYTES"),
            min_count_to_merge=_number(properties, "MANIFEST_MIN_MERGE_COUNT"),
            merge_enabled=True,
            snapshot_producer=self,
        )
        data = [one for one in manifests if one.content == ManifestContent.DATA]
        merged = merger.merge_manifests(data) + [one for one in manifests if one.content != ManifestContent.DATA]
        final = {one.manifest_path for one in merged}
        self.merged_away = [path for path in self._written_manifests if path not in final]
        return merged

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
) -> int:
    """Commit one table snapshot that adds and removes data files; returns its id. `live` must come from `table`.

    Raises CommitFailedException, with nothing changed and nothing left behind but data files, if the table has moved,
    and OutcomeUnknown if a server fell silent while the commit was on its way.
    """
    removed = list(removed)
    change = _OneChange(table)
    operation = Operation.OVERWRITE if removed else Operation.APPEND
    producer = _ChangeFiles(operation, change, live, dict(properties))
    for data_file in added:
        producer.append_data_file(data_file)
    for data_file in removed:
        producer.delete_data_file(data_file)
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


def describe_file(table: Table, path: str, key: Key) -> DataFile:
    """A data file for a Parquet file that lies in the store already, with statistics from its footer."""
    source = table.io.new_input(path)
    with source.open() as stream:
        footer = pq.read_metadata(stream)
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=compute_statistics_plan(table.schema(), table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(table.schema()),
    )
    values = partition_key(table, key)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=values.partition if values else Record(),
        file_size_in_bytes=len(source),
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def new_location(table: Table, key: Key, name: str) -> str:
    """Where a data file of a partition with this name (without suffix) belongs."""
    return table.location_provider().new_data_location(f"{name}.parquet", partition_key(table, key))
