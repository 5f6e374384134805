"""A committer on a lake of its own, and what its storage must hold, found without the code under test."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table

from lakehouse.model.partition import Partition
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.committer import Commit, Committer
from lakehouse.tables.iceberg import open_iceberg
from lakehouse.tables.locks import FileLocks
from lakehouse.tables.normalize import to_arrow

TABLE = "clean.outcomes"
DAY = dt.date(2024, 5, 1)
ROOT = Path(__file__).parents[3]


def open_committer(home: Path, run_id: str = "run") -> Committer:
    """A committer over local files below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    iceberg = open_iceberg(f"sqlite:///{home / 'iceberg.db'}", home / "warehouse")
    return Committer(iceberg, load_catalog(ROOT / "catalog"), FileLocks(home / "locks"), run_id)


def partition(number: int) -> Partition:
    """One of many partitions: a source a number."""
    return Partition(f"source_{number}", DAY, 1)


def rows(committer: Committer, number: int, ids: Iterable[str]) -> pa.Table:
    """Rows of partition `number`, one an id."""
    values = [
        {
            "source": f"source_{number}",
            "dt": DAY,
            "schema_version": 1,
            "fetch_id": name,
            "outcome": "clean",
            "reason": None,
            "rows_out": 1,
        }
        for name in ids
    ]
    return to_arrow(values, committer.catalog.table_schema(TABLE))


def replace(committer: Committer, number: int, ids: Iterable[str]) -> Commit:
    """Make partition `number` hold these ids."""
    return committer.replace(TABLE, rows(committer, number, ids), [partition(number)])


def load(committer: Committer) -> Table:
    """The table as it is now."""
    return committer.iceberg.load_table(TABLE)


def ids_in(table: Table, snapshot_id: int | None = None) -> list[str]:
    """All ids of a table snapshot, read from its files."""
    found = table.scan(snapshot_id=snapshot_id, selected_fields=("fetch_id",)).to_arrow()["fetch_id"].to_pylist()
    return sorted(found)


def needed_files(table: Table) -> set[str]:
    """Paths of every manifest list, manifest and live data file of every table snapshot."""
    found: set[str] = set()
    for snapshot in table.metadata.snapshots:
        found.add(str(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            found.add(manifest.manifest_path)
            found.update(e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io) if e.status != 2)
    return {path.removeprefix("file://") for path in found}


def stored_files(table: Table) -> set[str]:
    """Paths of every data file, manifest and manifest list that lies in the table's folder."""
    folder = Path(table.location().removeprefix("file://"))
    return {str(path) for path in folder.rglob("*") if path.suffix in {".parquet", ".avro"}}


def metadata_folder(table: Table) -> Path:
    """Where the table's metadata lie."""
    return Path(table.location().removeprefix("file://")) / "metadata"
