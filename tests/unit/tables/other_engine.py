"""Changes of tables that this project never makes, as other engines make them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from lakehouse.tables import producer
from lakehouse.tables.current import write_current


def add_position_delete(table: Table, target: DataFile) -> None:
    """Delete the first row of a data file the way another engine does: by a delete file in a manifest of its own."""
    location = target.file_path.replace(".parquet", "-deletes.parquet")
    frame = pa.table({"file_path": [target.file_path], "pos": pa.array([0], pa.int64())})
    with table.io.new_output(location).create() as stream:
        pq.write_table(frame, stream)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=target.partition,
        record_count=1,
        file_size_in_bytes=len(table.io.new_input(location)),
        spec_id=table.spec().spec_id,
        equality_ids=None,
    )
    change = producer.OneChange(table)
    live = producer.live_files(table, [])
    snapshot = producer.ChangeFiles(Operation.OVERWRITE, change, live, {})
    manifests = snapshot._existing_manifests

    def with_deletes() -> Sequence[object]:
        with snapshot.new_manifest_writer(table.spec()) as writer:
            writer.add(ManifestEntry.from_args(status=1, snapshot_id=snapshot.snapshot_id, data_file=deletes))
        manifest = writer.to_manifest_file()
        manifest[3] = ManifestContent.DELETES
        return [*manifests(), manifest]

    snapshot._existing_manifests = with_deletes  # type: ignore[method-assign, assignment]
    snapshot.commit()
    table._do_commit(updates=change._updates, requirements=change._requirements)
    write_current(table)
