"""The views on the real servers: DuckDB, Polars and Trino show the same rows, and read no more than they must."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from infra.launcher import Servers
from lakehouse.lake import Lake
from lakehouse.query import connect
from lakehouse.query.frames import from_batch, from_rows
from lakehouse.query.trino import TrinoAccess, connect_trino, read_rows
from lakehouse.query.trino_views import publish_views
from lakehouse.settings import Settings
from lakehouse.tables.content import content_hash
from tests.evolution import COMPAT, DAYS, SOURCES, compat_schema, evolved_lake, expected_rows, query_of


@pytest.fixture(scope="module")
def evolved(server_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, str]]:
    with evolved_lake(server_settings, tmp_path_factory.mktemp("evolved")) as found:
        yield found


@pytest.fixture(scope="module")
def reader(servers: Servers, evolved: tuple[Lake, str]) -> TrinoAccess:
    """Trino's default user, after the views were made."""
    lake, table = evolved
    port = servers.state.ports["trino"]
    upkeep = TrinoAccess("127.0.0.1", port, "upkeep", "lakehouse_upkeep")
    made = publish_views(upkeep, lake.iceberg)
    assert {f"{table}{view}" for view in ("_effective", "_latest", "_compat")} <= set(made)
    assert publish_views(upkeep, lake.iceberg) == []
    return TrinoAccess("127.0.0.1", port)


@pytest.mark.parametrize("view", ["_compat", "_effective", "_latest"])
def test_all_engines_show_one_year(evolved: tuple[Lake, str], reader: TrinoAccess, view: str) -> None:
    lake, table = evolved
    schema = compat_schema(lake, table)
    expected = pa.Table.from_pylist(expected_rows(view), schema=schema)
    with connect(lake) as db:
        duck = from_batch(db.sql(query_of(view, table)).to_arrow_table(), schema)
        if view == "_compat":
            polars = from_batch(db.scan(f"{table}_compat").select(COMPAT).collect().to_arrow(), schema)
            assert content_hash(polars) == content_hash(expected)
    rows = [row for batch in read_rows(reader, query_of(view, table)) for row in batch]
    assert {content_hash(one) for one in (duck, from_rows(rows, schema))} == {content_hash(expected)}


@pytest.mark.parametrize("view", ["", "_effective", "_compat"])
def test_trino_reads_the_partitions_that_are_asked_for(
    evolved: tuple[Lake, str], reader: TrinoAccess, view: str
) -> None:
    _, table = evolved
    where = f"source = '{SOURCES[0]}' AND dt >= DATE '{DAYS[6]}' AND dt < DATE '{DAYS[7]}' AND schema_version >= 2"
    with connect_trino(reader) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT dt, count(*) FROM {table}{view} WHERE {where} GROUP BY dt")
        assert cursor.fetchall() == [[DAYS[6], 10]]
        # What the scans gave: the ten rows of the partition and the pointers; the table has 280 rows.
        assert 10 <= cursor.stats["processedRows"] < 100
