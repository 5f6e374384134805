"""A committer on local files with a dataset of its own, whose versions a test may declare."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.model.partition import Partition
from lakehouse.specs.loader import Catalog, load_catalog
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.committer import Committer
from lakehouse.tables.iceberg import open_iceberg
from lakehouse.tables.locks import FileLocks
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parents[3]
TABLE = "feature.things"
DAY = dt.date(2024, 5, 1)
TYPES = {
    "batch_id": "string",
    "text": "string",
    "small": "int",
    "big": "long",
    "ratio": "double",
    "yes": "boolean",
    "day": "date",
    "at": "timestamp",
    "raw": "binary",
    "extra": "json",
    "price": "decimal(12,2)",
    "names": "list<string>",
    "heads": "map<string,string>",
    "inner": "struct<a: int, b: string>",
    "parts": "list<struct<x: int, y: string>>",
}


def schema(version: int = 1, types: dict[str, str] | None = None, **changes: Any) -> SchemaSpec:
    """A version of the dataset `things`."""
    fields = [
        {"name": name, "type": kind, "description": name, "required": name == "batch_id"}
        for name, kind in (types or TYPES).items()
    ]
    values: dict[str, Any] = {
        "dataset": "things",
        "version": version,
        "layer": "feature",
        "table": TABLE,
        "description": "Every column type.",
        "changes": "First version.",
        "reviewed_by": "maintainers",
        "sort": ["-at", "text"] if types is None else [],
        "fields": fields,
    }
    return SchemaSpec(**{**values, **changes})


def row(number: int = 0, source: str = "aa", batch: str = "0" * 32, **changes: Any) -> dict[str, Any]:
    """A row of version 1 with a value of every type."""
    values: dict[str, Any] = {
        "source": source,
        "dt": DAY,
        "schema_version": 1,
        "batch_id": batch,
        "text": f"文字 {number}",
        "small": number,
        "big": 2**40 + number,
        "ratio": number / 3,
        "yes": number % 2 == 0,
        "day": DAY + dt.timedelta(days=number),
        "at": dt.datetime(2024, 5, 1, 12, 0, number % 60, 123456, tzinfo=dt.UTC),
        "raw": bytes([number % 256, 0, 255]),
        "extra": {"n": number},
        "price": number,
        "names": ["b", None, f"a{number}"],
        "heads": {"k": "v", "a": None},
        "inner": {"a": number, "b": None},
        "parts": [{"x": number, "y": None}],
    }
    return {**values, **changes}


def rows(count: int, source: str = "aa", batch: str = "0" * 32, first: int = 0) -> pa.Table:
    """`count` different rows."""
    return to_arrow([row(first + number, source, batch) for number in range(count)], schema())


def catalog_of(*specs: SchemaSpec) -> Catalog:
    """The project's catalog with these versions of `things` beside what it declares."""
    catalog = load_catalog(ROOT / "catalog")
    return replace(catalog, schemas={**catalog.schemas, "things": specs or (schema(),)})


def open_committer(home: Path, *specs: SchemaSpec, run_id: str = "run") -> Committer:
    """A committer on SQLite and file locks below `home`."""
    iceberg = open_iceberg(f"sqlite:///{home / 'iceberg.db'}", home / "warehouse")
    return Committer(iceberg, catalog_of(*specs), FileLocks(home / "locks", timeout=20), run_id)


def part(source: str = "aa") -> Partition:
    """The one day of a source."""
    return Partition(source, DAY, 1)
