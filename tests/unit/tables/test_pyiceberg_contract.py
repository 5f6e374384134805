"""What this project uses of PyIceberg without a promise: an upgrade that changes it fails here, and loudly."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema, write_file
from pyiceberg.manifest import DataFile, ManifestEntryStatus
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table, WriteTask
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)

from lakehouse.tables.committer import Committer
from lakehouse.tables.iceberg import updated_metadata
from lakehouse.tables.producer import commit_files, key_in, live_files
from lakehouse.tables.writer import NewFile, describe_file, new_location, write_files
from tests.unit.tables.kernel_lake import DAY, TABLE, TYPES, open_committer, rows, schema

KEY = ("aa", DAY, 1)
FACTS = (
    "content",
    "file_format",
    "partition",
    "record_count",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "equality_ids",
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return open_committer(tmp_path).table(TABLE)


def theirs(table: Table, frame: pa.Table) -> DataFile:
    """The data file that PyIceberg writes for the same rows."""
    values = [PartitionFieldValue(field, value) for field, value in zip(table.spec().fields, KEY, strict=True)]
    task = WriteTask(
        write_uuid=table.metadata.table_uuid,
        task_id=0,
        schema=pyarrow_to_schema(frame.schema, name_mapping=table.schema().name_mapping),
        record_batches=frame.to_batches(),
        partition_key=PartitionKey(values, table.spec(), table.schema()),
    )
    return next(iter(write_file(table.io, table.metadata, iter([task]))))


def facts(data_file: DataFile) -> dict[str, object]:
    """What readers plan with."""
    found = {name: getattr(data_file, name) for name in FACTS}
    return {name: dict(value) if isinstance(value, dict) else value for name, value in found.items()}


def footer(table: Table, data_file: DataFile) -> pq.FileMetaData:
    """The Parquet footer of a data file."""
    with table.io.new_input(data_file.file_path).open() as stream:
        return pq.read_metadata(stream)


def test_the_version_is_pinned() -> None:
    assert version("pyiceberg") == "0.12.0"


def test_our_files_have_the_bytes_ids_and_statistics_of_pyiceberg(table: Table) -> None:
    frame = rows(50)
    (ours,) = write_files(table, [NewFile(KEY, frame, "ours")])
    peer = theirs(table, frame)
    assert facts(ours) == facts(peer)
    assert ours.file_path.rpartition("/")[0] == peer.file_path.rpartition("/")[0]
    assert ours.file_size_in_bytes == len(table.io.new_input(ours.file_path)) == peer.file_size_in_bytes
    one, other = footer(table, ours), footer(table, peer)
    assert one.schema.to_arrow_schema().equals(other.schema.to_arrow_schema(), check_metadata=True)
    assert one.row_group(0).column(0).compression == "ZSTD"
    assert key_in(ours) == KEY


def test_a_file_described_from_its_footer_is_as_it_was_written(table: Table) -> None:
    (ours,) = write_files(table, [NewFile(KEY, rows(5), "ours")])
    described = describe_file(table, ours.file_path, KEY)
    assert facts(described) == facts(ours)
    assert described.file_size_in_bytes == ours.file_size_in_bytes
    assert new_location(table, KEY, "ours") == ours.file_path


def test_columns_that_a_frame_lacks_are_written_as_null_with_their_id(tmp_path: Path) -> None:
    wider = schema(2, {**TYPES, "added": "struct<n: int, tags: list<string>>"})
    table = open_committer(tmp_path, schema(), wider).table(TABLE)
    (ours,) = write_files(table, [NewFile(KEY, rows(2), "ours")])
    assert facts(ours) == facts(theirs(table, rows(2)))
    field = footer(table, ours).schema.to_arrow_schema().field("added")
    assert int(field.metadata[b"PARQUET:field_id"]) == table.schema().find_field("added").field_id


def commit(committer: Committer, sources: list[str], remove: list[str]) -> Table:
    """One snapshot that adds a file for each source and removes those of others."""
    table = committer.iceberg.load_table(TABLE)
    live = live_files(table, [(source, DAY, 1) for source in {*sources, *remove}])
    new = [NewFile((source, DAY, 1), rows(2, source), f"{source}-{len(table.snapshots())}") for source in sources]
    removed = [one for source in remove for one in live.files[source, DAY, 1]]
    snapshot_id = commit_files(table, live, write_files(table, new), removed, {"why": "contract"})
    assert table.metadata.current_snapshot_id == snapshot_id
    return committer.iceberg.load_table(TABLE)


def statuses(table: Table) -> list[tuple[str, ManifestEntryStatus]]:
    """Source and status of every entry of the current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = [
        entry
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    return sorted((str(entry.data_file.partition[0]), ManifestEntryStatus(entry.status)) for entry in entries)


def test_a_snapshot_producer_adds_and_removes_in_one_snapshot(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    committer.table(TABLE)
    table = commit(committer, ["aa", "bb", "cc"], [])
    first = table.current_snapshot()
    assert first is not None
    assert first.summary is not None
    assert (first.summary.operation, first.summary["why"]) == (Operation.APPEND, "contract")
    table = commit(committer, ["aa"], ["aa", "bb"])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.parent_snapshot_id == first.snapshot_id
    assert snapshot.summary.operation is Operation.OVERWRITE
    wanted = {"added-data-files": "1", "deleted-data-files": "2", "total-data-files": "2", "total-records": "4"}
    assert {name: snapshot.summary[name] for name in wanted} == wanted
    assert statuses(table) == [
        ("aa", ManifestEntryStatus.ADDED),
        ("aa", ManifestEntryStatus.DELETED),
        ("bb", ManifestEntryStatus.DELETED),
        ("cc", ManifestEntryStatus.EXISTING),
    ]
    assert sorted(table.scan().to_arrow()["source"].to_pylist()) == ["aa", "aa", "cc", "cc"]
    assert sorted(table.scan(snapshot_id=first.snapshot_id).to_arrow()["source"].to_pylist()) == [
        *["aa"] * 2,
        *["bb"] * 2,
        *["cc"] * 2,
    ]


def last_sequence_number(table: Table) -> int:
    """The sequence number of the table's newest snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.sequence_number is not None
    return snapshot.sequence_number


def test_manifests_are_merged_and_keep_rows_and_sequence_numbers(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    committer.table(TABLE)
    added: dict[str, int] = {}
    for number in range(25):
        source = f"s{number:02}"
        table = commit(committer, [source], [f"s{number - 1:02}"] if number % 5 == 4 else [])
        added[source] = last_sequence_number(table)
        if number % 5 == 4:
            del added[f"s{number - 1:02}"]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    assert len(manifests) < 10
    found = {
        entry.data_file.partition[0]: entry.sequence_number
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert found == added
    reached = {one.manifest_path for each in table.snapshots() for one in each.manifests(table.io)} | {
        str(each.manifest_list) for each in table.snapshots()
    }
    assert {f"file://{path}" for path in tmp_path.rglob("*.avro")} == reached


def test_updated_metadata_are_those_of_pyiceberg(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    for number in range(3):
        committer.append(TABLE, rows(1, batch=f"{number:032x}"))
    table = committer.iceberg.load_table(TABLE)
    head = table.current_snapshot()
    assert head is not None
    assert head.parent_snapshot_id is not None
    updates = (
        SetPropertiesUpdate(updates={"a": "b"}),
        SetSnapshotRefUpdate(
            ref_name="day",
            type=SnapshotRefType.TAG,
            snapshot_id=head.snapshot_id,
            max_ref_age_ms=None,
            max_snapshot_age_ms=None,
            min_snapshots_to_keep=None,
        ),
        RemoveSnapshotsUpdate(snapshot_ids=[head.parent_snapshot_id]),
    )
    before = table.metadata.model_dump_json()
    ours = updated_metadata(table, updates)
    theirs_ = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
    assert ours is not None
    same = {"last_updated_ms": 0}
    assert ours.model_copy(update=same).model_dump_json() == theirs_.model_copy(update=same).model_dump_json()
    assert ours.last_updated_ms > table.metadata.last_updated_ms
    assert table.metadata.model_dump_json() == before
    assert updated_metadata(table, ()) is None


def test_partition_values_come_back_as_keys(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    committer.append(TABLE, rows(1, "a_source_with_a_name_longer_than_sixteen_characters"))
    table = committer.iceberg.load_table(TABLE)
    key = ("a_source_with_a_name_longer_than_sixteen_characters", DAY, 1)
    assert [key_in(task.file) for task in table.scan().plan_files()] == [key]
    assert len(live_files(table, [key]).files[key]) == 1
    assert live_files(table, [("aa", DAY, 1)]).files == {("aa", DAY, 1): []}
