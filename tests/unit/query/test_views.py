"""Views over a year of a dataset in four versions, read with DuckDB and as Polars frames."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest

from lakehouse.lake import Lake
from lakehouse.query import connect
from lakehouse.query.casts import cast_sql
from lakehouse.query.frames import from_batch
from lakehouse.query.reads import measure_reads
from lakehouse.settings import load_settings
from lakehouse.specs.types import parse_type
from lakehouse.tables.content import content_hash
from lakehouse.tables.registrations import registered_versions
from tests.evolution import DAYS, FIELDS, SOURCES, compat_schema, evolved_lake, expected_rows, query_of


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, str]]:
    folder = tmp_path_factory.mktemp("evolved")
    with evolved_lake(load_settings(home=folder / "home"), folder) as found:
        yield found


@pytest.mark.parametrize("view", ["_compat", "_effective", "_latest"])
def test_every_view_shows_the_year_under_the_newest_names(evolved: tuple[Lake, str], view: str) -> None:
    lake, table = evolved
    schema = compat_schema(lake, table)
    expected = pa.Table.from_pylist(expected_rows(view), schema=schema)
    with connect(lake) as db:
        found = from_batch(db.sql(query_of(view, table)).to_arrow_table(), schema)
    assert found.num_rows == expected.num_rows > 0
    assert content_hash(found) == content_hash(expected)


@pytest.mark.parametrize("view", ["", "_compat", "_effective", "_latest"])
def test_a_polars_frame_has_the_rows_of_its_view(evolved: tuple[Lake, str], view: str) -> None:
    lake, table = evolved
    with connect(lake) as db:
        lazy = db.scan(f"{table}{view}")
        wanted = (pl.col("source") == SOURCES[0]) & (pl.col("dt") >= DAYS[3]) & (pl.col("schema_version") >= 2)
        narrow = lazy.filter(wanted).select("url_fp", "schema_version")
        found = narrow.collect().sort("url_fp", "schema_version").rows()
        asked = f"source = '{SOURCES[0]}' AND dt >= DATE '{DAYS[3]}' AND schema_version >= 2"
        query = f"SELECT url_fp, schema_version FROM {table}{view} WHERE {asked} ORDER BY ALL"
        assert found == db.execute(query).fetchall() != []
        assert "SELECTION: None" not in narrow.explain()


@pytest.mark.parametrize("view", ["", "_effective", "_compat"])
def test_a_query_reads_the_files_of_its_partitions_alone(evolved: tuple[Lake, str], view: str) -> None:
    lake, table = evolved
    month = f"dt >= DATE '{DAYS[6]}' AND dt < DATE '{DAYS[6] + dt.timedelta(days=31)}'"
    where = f"source = '{SOURCES[1]}' AND {month} AND schema_version >= 2"
    with connect(lake) as db:
        reads = measure_reads(db, f"SELECT dt, count(*) FROM {table}{view} WHERE {where} GROUP BY dt")
    (of_table,) = [one for one in reads.tables if one.table == table]
    assert (of_table.files_read, of_table.files) == (1, 28)
    assert reads.rows == 1
    assert of_table.bytes is not None
    assert 0 < reads.bytes_read < of_table.bytes


def test_old_partitions_and_field_ids_stay_as_they_were(evolved: tuple[Lake, str]) -> None:
    lake, table = evolved
    found = lake.iceberg.load_table(table)
    schemas = found.schemas()
    assert len(schemas) == len(FIELDS)
    ids = [{field.name: field.field_id for field in schema.fields} for schema in schemas.values()]
    for earlier in ids:
        assert earlier.items() <= ids[-1].items()
    assert len(set(ids[-1].values())) == len(ids[-1])


def test_versions_are_recorded_before_a_table_takes_them(evolved: tuple[Lake, str]) -> None:
    lake, table = evolved
    dataset = table.removeprefix("clean.")
    known = registered_versions(lake.decisions)
    mine = [known[dataset, version] for version in FIELDS]
    assert [one.decision.reason for one in mine] == [f"Version {n} of the story." for n in FIELDS]
    assert {one.decision.payload["table"] for one in mine} == {table}
    committed = {snapshot.timestamp_ms for snapshot in lake.iceberg.load_table(table).metadata.snapshots}
    assert mine[0].decided_at.timestamp() * 1000 <= min(committed)
    assert len([one for one in lake.decisions.all("schema") if one.decision.dataset == dataset]) == len(FIELDS)


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("int", "long", [2**31 - 1], [2**31 - 1]),
        ("int", "decimal(12,2)", [7], ["7.00"]),
        ("long", "string", [-12], ["-12"]),
        ("date", "string", [dt.date(2024, 2, 29)], ["2024-02-29"]),
        ("boolean", "string", [True, False], ["true", "false"]),
        ("decimal(9,2)", "decimal(18,4)", ["1.50"], ["1.5000"]),
        ("string", "int", ["2147483647", "2147483648", "+1", "01", " 1", "1_0"], [2147483647] + [None] * 5),
        ("string", "long", ["-9223372036854775808", "9223372036854775808"], [-(2**63), None]),
        ("string", "date", ["2024-02-29", "2023-02-29", "2024-2-9"], [dt.date(2024, 2, 29), None, None]),
        ("string", "boolean", ["true", "TRUE", "1"], [True, None, None]),
        ("string", "decimal(3,3)", ["0.125", "0.1255", "1.0"], ["0.125", None, None]),
    ],
)
def test_what_cannot_be_cast_without_loss_is_null(
    old: str, new: str, values: list[object], expected: list[object]
) -> None:
    from lakehouse.query.duck import open_duckdb

    text = cast_sql("v", parse_type(old), parse_type(new))
    names = {"string": "VARCHAR", "long": "BIGINT"}
    with open_duckdb({}) as db:
        literals = ", ".join("(?)" for _ in values)
        query = f"SELECT {text} FROM (SELECT CAST(v AS {names.get(old, old)}) AS v FROM (VALUES {literals}) t(v))"
        found = [row[0] for row in db.execute(query, values).fetchall()]
    assert [str(one) if new.startswith("decimal") and one is not None else one for one in found] == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("double", "string"),
        ("long", "double"),
        ("long", "int"),
        ("long", "decimal(18,0)"),
        ("decimal(9,2)", "decimal(9,3)"),
        ("date", "timestamp"),
        ("string", "timestamp"),
        ("list<string>", "string"),
    ],
)
def test_types_without_a_lossless_cast_give_none(old: str, new: str) -> None:
    assert cast_sql("v", parse_type(old), parse_type(new)) is None
