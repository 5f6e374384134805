"""A lake on the real servers with one table of its own that has every column type, for tests of upkeep and readers."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from minio import Minio
from pyiceberg.table import Table

from lakehouse.lake import Lake, open_lake
from lakehouse.model.partition import Partition
from lakehouse.query.trino import TrinoAccess
from lakehouse.settings import WAREHOUSE_BUCKET, Settings
from lakehouse.tables.committer import Commit, Committer
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parents[2]
DAY = dt.date(2024, 5, 1)
NOON = dt.datetime(2024, 5, 1, 4, 30, 0, 123_456, tzinfo=dt.UTC)
SCHEMA = """
dataset: {dataset}
version: 1
layer: feature
table: feature.{dataset}
description: Every column type.
changes: First version.
reviewed_by: maintainers
sort: [name]
fields:
  - {{name: name, type: string, description: identity of the row, required: true}}
  - {{name: small, type: int, description: 32 bits}}
  - {{name: large, type: long, description: 64 bits}}
  - {{name: half, type: float, description: 32 bits of a fraction}}
  - {{name: ratio, type: double, description: 64 bits of a fraction}}
  - {{name: yes, type: boolean, description: a flag}}
  - {{name: day, type: date, description: a day}}
  - {{name: at, type: timestamp, description: an instant}}
  - {{name: raw, type: binary, description: bytes}}
  - {{name: money, type: "decimal(18,4)", description: an amount}}
  - {{name: extra, type: json, description: free form}}
  - {{name: words, type: "list<string>", description: texts}}
  - {{name: days, type: "list<date>", description: days}}
  - {{name: headers, type: "map<string,string>", description: texts by name}}
  - {{name: prices, type: "map<string,decimal(9,2)>", description: amounts by name}}
  - {{name: place, type: "struct<city: string, zip: int>", description: a place}}
  - {{name: images, type: "list<struct<src: string, seen: timestamp>>", description: pictures}}
"""


@dataclass(frozen=True, slots=True)
class KindsLake:
    """A lake and the table that this test alone uses."""

    lake: Lake
    name: str

    @property
    def committer(self) -> Committer:
        return self.lake.committer

    def table(self) -> Table:
        """The table as it is now."""
        return self.lake.iceberg.load_table(self.name)

    def frame(self, number: int, names: list[str]) -> pa.Table:
        """Rows of partition `number`, one a name, with values of every type."""
        rows = [kinds_row(name, index) | _lead(number) for index, name in enumerate(names)]
        return to_arrow(rows, self.lake.catalog.table_schema(self.name))

    def replace(self, number: int, names: list[str]) -> Commit:
        """Make partition `number` hold these rows."""
        return self.committer.replace(self.name, self.frame(number, names), [partition(number)])

    def names_in(self, snapshot_id: int | None = None) -> list[str]:
        """Names of all rows of a table snapshot, read from its files."""
        found = self.table().scan(snapshot_id=snapshot_id, selected_fields=("name",)).to_arrow()
        return sorted(found["name"].to_pylist())

    def stored(self) -> set[str]:
        """Every data file, manifest and manifest list in the table's folder, listed from the store itself."""
        location = self.table().location()
        if location.startswith("file://"):
            found = (str(path) for path in Path(location.removeprefix("file://")).rglob("*") if path.is_file())
            return {f"file://{path}" for path in found if path.endswith((".parquet", ".avro"))}
        settings = self.lake.settings
        assert settings.pipeline_secret_key is not None
        client = Minio(
            endpoint=str(settings.s3_endpoint).removeprefix("http://"),
            access_key=settings.pipeline_access_key,
            secret_key=settings.pipeline_secret_key.get_secret_value(),
            secure=False,
        )
        prefix = location.removeprefix(f"s3://{WAREHOUSE_BUCKET}/") + "/"
        keys = (item.object_name or "" for item in client.list_objects(WAREHOUSE_BUCKET, prefix=prefix, recursive=True))
        return {f"s3://{WAREHOUSE_BUCKET}/{key}" for key in keys if key.endswith((".parquet", ".avro"))}

    def needed(self) -> set[str]:
        """Every file that some table snapshot needs, read from manifests without the code under test."""
        table = self.table()
        found: set[str] = set()
        for snapshot in table.metadata.snapshots:
            found.add(str(snapshot.manifest_list))
            for manifest in snapshot.manifests(table.io):
                found.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io)
                found.update(entry.data_file.file_path for entry in entries if entry.status != 2)
        return found


@contextmanager
def open_kinds_lake(settings: Settings, folder: Path) -> Iterator[KindsLake]:
    """A lake whose catalog also declares `feature.kinds_<random>`."""
    dataset = f"kinds_{uuid4().hex[:8]}"
    catalog = folder / "catalog"
    shutil.copytree(ROOT / "catalog", catalog)
    (catalog / "schemas" / dataset).mkdir()
    (catalog / "schemas" / dataset / "v1.yaml").write_text(SCHEMA.format(dataset=dataset))
    with open_lake(settings.model_copy(update={"catalog_dir": catalog})) as lake:
        yield KindsLake(lake, f"feature.{dataset}")


def partition(number: int) -> Partition:
    """One of many partitions: a source a number."""
    return Partition(f"source_{number}", DAY, 1)


def trino_access(kinds: KindsLake, user: str = "reader", catalog: str = "lakehouse") -> TrinoAccess:
    """The way to Trino as one of its users."""
    settings = kinds.lake.settings
    assert settings.trino_host is not None
    assert settings.trino_port is not None
    return TrinoAccess(settings.trino_host, settings.trino_port, user, catalog)


def kinds_row(name: str, index: int) -> dict[str, Any]:
    """Values that engines like to change: zones, scale, empty against null, order of keys; every third row is bare."""
    row: dict[str, Any] = {**dict.fromkeys(re.findall(r"name: (\w+), type", SCHEMA)), "name": name}
    if index % 3 == 2:
        return row | {"words": [], "headers": {}, "raw": b"", "extra": None}
    return row | {
        "small": -(2**31),
        "large": 2**62 + index,
        "half": 0.1,
        "ratio": 0.1 + 0.2,
        "yes": index % 2 == 0,
        "day": dt.date(1969, 12, 31),
        "at": NOON - dt.timedelta(days=20_000),
        "raw": bytes(range(256)),
        "money": Decimal("-12345678901234.0001"),
        "extra": {"价": [1, None, "𠮷"]},
        "words": ["b", None, "", "中文"],
        "days": [DAY, None],
        "headers": {"z": "1", "a": None, "": ""},
        "prices": {"q": Decimal("1.10"), "p": None},
        "place": {"city": "上海", "zip": None} if index % 2 else None,
        "images": [{"src": "x", "seen": NOON}, None, {"src": None, "seen": None}],
    }


def _lead(number: int) -> dict[str, Any]:
    return {"source": f"source_{number}", "dt": DAY, "schema_version": 1}
