from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from lakehouse.errors import UnavailableError, UnknownNameError
from lakehouse.query import verify
from lakehouse.query.engines import DuckEngine, PyIcebergEngine, TableState, TrinoEngine
from lakehouse.query.frames import from_batch, from_rows, to_plain
from lakehouse.query.trino import TrinoAccess
from lakehouse.tables.content import content_hash
from lakehouse.tables.storage import plain_path
from tests.unit.query.sample import DAY, POINTER_FIELDS, append, kind_rows, kinds_schema, make_table

ENGINES = (PyIcebergEngine(), DuckEngine({}))


def test_engines_agree_on_every_column_type(iceberg: SqlCatalog, kinds: Table, articles: Table) -> None:
    make_table(iceberg, "raw.empty", POINTER_FIELDS)
    report = verify(iceberg, ENGINES)
    assert [(table.table, table.readings[0].rows) for table in report.tables] == [
        ("clean.articles", 8),
        ("meta.effective", 2),
        ("raw.empty", 0),
        ("raw.kinds", 5),
    ]
    assert report.differences == ()
    assert report.as_dict()["equal"] is True
    by_name = {table.table: table for table in report.tables}
    assert by_name["raw.kinds"].readings[0].hash != "0" * 32


def test_the_hash_is_that_of_the_whole_table(iceberg: SqlCatalog, kinds: Table) -> None:
    report = verify(iceberg, ENGINES, tables=["raw.kinds"])
    whole = kinds.scan().to_arrow()
    assert {reading.hash for reading in report.tables[0].readings} == {content_hash(whole)}


def test_a_table_read_with_an_older_schema_is_equal(iceberg: SqlCatalog, articles: Table) -> None:
    with articles.update_schema() as update:
        update.add_column("author", StringType())
    assert verify(iceberg, ENGINES, tables=["clean.articles"]).differences == ()


class OneRowLess:
    """An engine that loses a row."""

    name = "lossy"

    def read(self, state: TableState) -> Iterator[pa.Table]:
        for frame in DuckEngine({}).read(state):
            yield frame.slice(1)


class OneValueOff:
    """An engine that rounds a price."""

    name = "rounding"

    def read(self, state: TableState) -> Iterator[pa.Table]:
        for frame in DuckEngine({}).read(state):
            if "money" in frame.column_names:
                at = frame.schema.get_field_index("money")
                rounded = [None if v is None else round(v, 3) for v in frame["money"].to_pylist()]
                values = pa.array([None if v is None else Decimal(v) for v in rounded], frame.schema.field(at).type)
                yield frame.set_column(at, "money", values)
            else:
                yield frame


@pytest.mark.parametrize("engine", [OneRowLess(), OneValueOff()])
def test_a_difference_names_table_engines_and_counts(
    iceberg: SqlCatalog, kinds: Table, engine: OneRowLess | OneValueOff
) -> None:
    report = verify(iceberg, [PyIcebergEngine(), engine])
    assert [table.table for table in report.differences] == ["raw.kinds"]
    text = report.differences[0].describe()
    rows = 4 if engine.name == "lossy" else 5
    assert text.startswith("raw.kinds: pyiceberg 5 rows, hash ")
    assert f"{engine.name} {rows} rows, hash " in text


def test_a_file_that_is_gone_is_a_difference_of_its_table_alone(
    iceberg: SqlCatalog, kinds: Table, articles: Table
) -> None:
    task = next(iter(kinds.scan().plan_files()))
    Path(plain_path(task.file.file_path)).unlink()
    report = verify(iceberg, ENGINES)
    assert [table.table for table in report.differences] == ["raw.kinds"]
    errors = [reading.error or "" for reading in report.differences[0].readings]
    assert all("raw.kinds" in error and "parquet" in error for error in errors)


def test_a_file_changed_in_place_is_found_by_no_count_but_by_the_hash(iceberg: SqlCatalog, articles: Table) -> None:
    before = verify(iceberg, ENGINES, tables=["clean.articles"]).tables[0]
    other = make_table(iceberg, "raw.other", POINTER_FIELDS)
    rows = {"dataset": "articles", "source": "news", "dt": DAY, "schema_version": 1}
    append(other, [rows])
    append(other, [rows | {"dt": DAY + dt.timedelta(days=1)}])
    first, second = (plain_path(task.file.file_path) for task in other.scan().plan_files())
    before_other = verify(iceberg, ENGINES, tables=["raw.other"]).tables[0].readings[0]
    Path(first).write_bytes(Path(second).read_bytes())
    after_other = verify(iceberg, ENGINES, tables=["raw.other"]).tables[0].readings[0]
    assert (before_other.rows, after_other.rows) == (2, 2)
    assert before_other.hash != after_other.hash
    assert verify(iceberg, ENGINES, tables=["clean.articles"]).tables[0].readings[0].hash == before.readings[0].hash


def test_unknown_table_and_silent_trino_say_what_to_do(iceberg: SqlCatalog, articles: Table) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean clean\.articles"):
        verify(iceberg, ENGINES, tables=["clean.artcles"])
    nobody = TrinoEngine(TrinoAccess("127.0.0.1", 9))
    with pytest.raises(UnavailableError, match=r"Trino at 127\.0\.0\.1:9"):
        verify(iceberg, [nobody], tables=["clean.articles"])


def test_rows_of_python_values_become_the_same_frame() -> None:
    schema = to_plain(kinds_schema().as_arrow())
    frame = from_batch(pa.Table.from_pylist(kind_rows(), schema=kinds_schema().as_arrow()), schema)
    rows = []
    for row in frame.to_pylist():
        maps = {name: None if row[name] is None else dict(row[name]) for name in ("headers", "history")}
        place = None if row["place"] is None else tuple(row["place"].values())
        rows.append(list((row | maps | {"place": place}).values()))
    assert from_rows(rows, schema).equals(frame)
    assert from_rows([], schema).num_rows == 0


def test_a_value_that_does_not_fit_is_an_error() -> None:
    schema = pa.schema([("small", pa.int32()), ("money", pa.decimal128(9, 2))])
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        from_rows([[2**40, Decimal("1.00")]], schema)
    with pytest.raises(pa.ArrowInvalid):
        from_rows([[1, Decimal("1.001")]], schema)


def test_a_metadata_file_that_is_gone_is_a_difference(iceberg: SqlCatalog, kinds: Table, articles: Table) -> None:
    Path(plain_path(kinds.metadata_location)).unlink()
    report = verify(iceberg, ENGINES)
    assert [table.describe() for table in report.differences] == [
        "; ".join([f"raw.kinds: {text}", text])
        for text in [f"raw.kinds: the Iceberg catalog names {kinds.metadata_location}, which does not exist"]
    ]
    assert len(report.tables) == 3
