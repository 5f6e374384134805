from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowProjectionVisitor
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, MapType, NestedField, StringType, StructType

from lakehouse.tables import projection
from lakehouse.tables.iceberg import open_iceberg

PLACE = StructType(NestedField(10, "city", StringType()))
SCHEMA = Schema(
    NestedField(1, "places", ListType(20, PLACE, element_required=False)),
    NestedField(
        2,
        "by_name",
        MapType(21, StringType(), 22, StructType(NestedField(23, "city", StringType())), value_required=False),
    ),
)
PLAIN = pa.struct([("city", pa.string())])
ARROW = pa.schema([("places", pa.list_(PLAIN)), ("by_name", pa.map_(pa.string(), PLAIN))])
ROWS = [
    {"places": [{"city": "上海"}, None], "by_name": [("a", {"city": None}), ("b", None)]},
    {"places": None, "by_name": None},
    {"places": [], "by_name": []},
]


def test_null_and_empty_lists_and_maps_of_structs_stay_apart(tmp_path: Path) -> None:
    iceberg = open_iceberg(f"sqlite:///{tmp_path / 'iceberg.db'}", tmp_path / "warehouse")
    iceberg.create_namespace("raw")
    table = iceberg.create_table("raw.places", SCHEMA)
    table.append(pa.Table.from_pylist(ROWS, schema=ARROW))
    assert table.scan().to_arrow().to_pylist() == ROWS
    iceberg.engine.dispose()


def test_pyiceberg_by_itself_still_loses_them() -> None:
    """When this fails, PyIceberg keeps nulls: remove `projection`."""
    places = pa.array([None, []], pa.list_(PLAIN))
    visitor = ArrowProjectionVisitor(SCHEMA)
    kind = SCHEMA.find_type("places")
    assert isinstance(kind, ListType)
    before = projection._list(visitor, kind, places, places.values)
    after = projection._project_list(visitor, kind, places, places.values)
    assert before is not None
    assert after is not None
    assert (before.null_count, after.null_count) == (0, 1)
