"""Tables and rows for tests of readers: every column type with awkward values, and records in versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
DAY = dt.date(2024, 5, 1)
RECORD_FIELDS = (
    ("source", StringType()),
    ("dt", DateType()),
    ("schema_version", IntegerType()),
    ("url_fp", StringType()),
    ("canonical_fp", StringType()),
    ("content_hash", StringType()),
    ("title", StringType()),
    ("fetch_id", StringType()),
    ("collect_time", TimestamptzType()),
)
POINTER_FIELDS = (
    ("dataset", StringType()),
    ("source", StringType()),
    ("dt", DateType()),
    ("schema_version", IntegerType()),
)


def record(day: dt.date, version: int, page: str, **changes: Any) -> dict[str, Any]:
    """One row of `clean.articles`."""
    row = {
        "source": "news",
        "dt": day,
        "schema_version": version,
        "url_fp": f"u{page}",
        "canonical_fp": f"c{page}",
        "content_hash": f"h{day.day}{version}{page}",
        "title": f"{page} of {day} in version {version}",
        "fetch_id": f"f{day.day}{page}",
        "collect_time": NOON + (day - DAY),
    }
    return row | changes


def make_table(
    iceberg: SqlCatalog, name: str, fields: Sequence[tuple[str, Any]], *, partitioned: bool = False
) -> Table:
    """A table with fields numbered from 1, partitioned by the first three where asked."""
    schema = Schema(*(NestedField(i, field, kind) for i, (field, kind) in enumerate(fields, 1)))
    spec = PartitionSpec()
    if partitioned:
        spec = PartitionSpec(*(PartitionField(i, 1000 + i, IdentityTransform(), fields[i - 1][0]) for i in (1, 2, 3)))
    return iceberg.create_table(name, schema, partition_spec=spec)


def append(table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows as one table snapshot."""
    table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))


def kinds_schema() -> Schema:
    """Every column type that a registered schema may have, nested ones too."""
    return Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "small", IntegerType()),
        NestedField(3, "text", StringType()),
        NestedField(4, "day", DateType()),
        NestedField(5, "at", TimestamptzType()),
        NestedField(6, "money", DecimalType(18, 4)),
        NestedField(7, "big_money", DecimalType(38, 10)),
        NestedField(8, "raw", BinaryType()),
        NestedField(9, "yes", BooleanType()),
        NestedField(10, "ratio", DoubleType()),
        NestedField(11, "half", FloatType()),
        NestedField(12, "tags", ListType(20, StringType(), element_required=False)),
        NestedField(13, "headers", MapType(21, StringType(), 22, StringType(), value_required=False)),
        NestedField(
            14, "place", StructType(NestedField(23, "city", StringType()), NestedField(24, "zip", IntegerType()))
        ),
        NestedField(
            15,
            "images",
            ListType(
                25,
                StructType(NestedField(26, "src", StringType()), NestedField(27, "seen", TimestamptzType())),
                element_required=False,
            ),
        ),
        NestedField(
            16,
            "history",
            MapType(
                28, StringType(), 29, ListType(30, DecimalType(9, 2), element_required=False), value_required=False
            ),
        ),
    )


def kind_rows() -> list[dict[str, Any]]:
    """Rows with values that engines like to change: zones, scale, empty against null, bytes, unordered keys."""
    return [
        {
            "id": 2**62,
            "small": -(2**31),
            "text": "中文 𠮷 \u00e9 e\u0301 'quote' \\ \n\ttab",
            "day": dt.date(1969, 12, 31),
            "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
            "money": Decimal("-0.0001"),
            "big_money": Decimal("1234567890123456789012345678.0123456789"),
            "raw": bytes(range(256)),
            "yes": False,
            "ratio": 0.1 + 0.2,
            "half": 0.1,
            "tags": ["b", None, "", "a"],
            "headers": [("z", "1"), ("a", None), ("", "")],
            "place": {"city": "上海", "zip": None},
            "images": [{"src": "x", "seen": NOON}, None, {"src": None, "seen": None}],
            "history": [("p", [Decimal("1.10"), None]), ("q", []), ("r", None)],
        },
        {
            "id": 2,
            "text": "",
            "raw": b"",
            "tags": [],
            "headers": [],
            "place": {"city": None, "zip": None},
            "images": [],
        },
        {"id": 2, "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), "ratio": -0.0, "half": 1e-45},
        {"id": 3, "day": dt.date(1, 1, 1), "at": dt.datetime(1, 1, 1, tzinfo=dt.UTC), "ratio": 5e-324},
    ]
