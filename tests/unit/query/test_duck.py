from __future__ import annotations

import datetime as dt
import threading

import duckdb
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakehouse.errors import UnavailableError, UnknownNameError
from lakehouse.query import Connection, connect
from lakehouse.tables.storage import plain_path
from tests.unit.query.sample import DAY, NOON, POINTER_FIELDS, RECORD_FIELDS, append, make_table, record


def test_every_table_is_there_by_name_with_its_types(iceberg: SqlCatalog, kinds: Table, articles: Table) -> None:
    with connect(iceberg) as db:
        assert db.names == (
            "clean.articles",
            "clean.articles_compat",
            "clean.articles_effective",
            "clean.articles_latest",
            "meta.effective",
            "raw.kinds",
        )
        row = db.execute("select * from raw.kinds where id = ?", [2**62]).fetchone()
    assert row is not None
    assert row[2].startswith("中文 𠮷")
    assert row[7] == bytes(range(256))
    assert row[11] == ["b", None, "", "a"]
    assert row[12] == {"z": "1", "a": None, "": ""}


def test_statements_see_commits_made_after_connecting(iceberg: SqlCatalog, articles: Table) -> None:
    with connect(iceberg) as db:
        assert db.sql("select count(*) from clean.articles").fetchall() == [(8,)]
        append(articles, [record(DAY, 2, "c")])
        assert db.sql("select count(*) from clean.articles").fetchall() == [(9,)]
        make_table(iceberg, "raw.later", POINTER_FIELDS)
        assert db.sql("select count(*) from raw.later").fetchall() == [(0,)]
        iceberg.drop_table("raw.later")
        with pytest.raises(UnknownNameError, match=r"raw\.later"):
            db.sql("select 1 from raw.later")
        assert "raw.later" not in db.names


def test_a_new_column_shows_in_the_table_and_its_views(iceberg: SqlCatalog, articles: Table) -> None:
    with connect(iceberg) as db:
        with articles.update_schema() as update:
            from pyiceberg.types import StringType

            update.add_column("author", StringType())
        append(articles, [record(DAY, 2, "c", author="谁")])
        for name in ("articles", "articles_effective", "articles_latest"):
            found = db.execute(f"select author from clean.{name} where url_fp = 'uc'").fetchall()
            assert found == [("谁",)]


def test_effective_holds_the_pointed_version_of_each_day(iceberg: SqlCatalog, articles: Table) -> None:
    with connect(iceberg) as db:
        found = db.execute("select dt, schema_version, url_fp from clean.articles_effective order by all").fetchall()
    second = DAY + dt.timedelta(days=1)
    assert found == [(DAY, 2, "ua"), (DAY, 2, "ub"), (second, 1, "ua"), (second, 1, "ub")]


def test_a_pointer_twice_doubles_no_row(iceberg: SqlCatalog, articles: Table) -> None:
    pointers = iceberg.load_table("meta.effective")
    append(pointers, [{"dataset": "articles", "source": "news", "dt": DAY, "schema_version": 2}])
    append(pointers, [{"dataset": "notices", "source": "news", "dt": DAY, "schema_version": 1}])
    with connect(iceberg) as db:
        assert db.execute("select count(*) from clean.articles_effective").fetchall() == [(4,)]


def test_latest_is_the_newest_revision_whatever_the_order(iceberg: SqlCatalog, articles: Table) -> None:
    late = record(DAY, 2, "a", title="edited", fetch_id="zz", collect_time=NOON + dt.timedelta(days=3))
    append(articles, [late, record(DAY, 2, "a", source="other"), record(DAY, 1, "x", title="not effective")])
    append(
        iceberg.load_table("meta.effective"),
        [{"dataset": "articles", "source": "other", "dt": DAY, "schema_version": 2}],
    )
    with connect(iceberg) as db:
        found = db.execute("select source, url_fp, title from clean.articles_latest order by all").fetchall()
    second = DAY + dt.timedelta(days=1)
    assert found == [
        ("news", "ua", "edited"),
        ("news", "ub", f"b of {second} in version 1"),
        ("other", "ua", f"a of {DAY} in version 2"),
    ]


def test_nothing_is_effective_without_pointers(iceberg: SqlCatalog) -> None:
    append(make_table(iceberg, "clean.articles", RECORD_FIELDS, partitioned=True), [record(DAY, 1, "a")])
    with connect(iceberg) as db:
        assert db.execute("select count(*) from clean.articles_latest").fetchall() == [(0,)]
        pointers = make_table(iceberg, "meta.effective", POINTER_FIELDS)
        append(pointers, [{"dataset": "articles", "source": "news", "dt": DAY, "schema_version": 1}])
        assert db.execute("select count(*) from clean.articles_latest").fetchall() == [(1,)]


def test_views_read_only_the_partitions_they_need(iceberg: SqlCatalog) -> None:
    table = make_table(iceberg, "clean.articles", RECORD_FIELDS, partitioned=True)
    pointers = make_table(iceberg, "meta.effective", POINTER_FIELDS)
    days = [DAY + dt.timedelta(days=n) for n in range(10)]
    sources = ("alpha", "beta", "gamma")
    append(table, [record(day, v, "a", source=s) for day in days for v in (1, 2) for s in sources])
    append(
        pointers,
        [{"dataset": "articles", "source": s, "dt": day, "schema_version": 2} for s in sources for day in days],
    )
    with connect(iceberg) as db:
        one_day = _files_read(db, f"select title from clean.articles_effective where dt = '{days[3]}'")
        one_source = _files_read(db, "select title from clean.articles_latest where source = 'beta'")
    assert one_day <= 3
    assert one_source <= 10


def _files_read(connection: Connection, query: str) -> int:
    """Data files of the widest scan, as DuckDB's profile has them."""
    text = connection.execute(f"explain analyze {query}").fetchall()[0][1]
    counts = [int("".join(filter(str.isdigit, line))) for line in text.splitlines() if "Total Files Read" in line]
    assert counts
    return max(counts)


def test_unknown_tables_name_near_ones(iceberg: SqlCatalog, articles: Table, kinds: Table) -> None:
    with connect(iceberg) as db:
        for wrong in ("clean.artcles", "artcles", "raw.articles", "CLEAN.ARTCLES"):
            with pytest.raises(UnknownNameError, match=r"did you mean clean\.articles"):
                db.execute(f"select * from {wrong}")
        with pytest.raises(UnknownNameError, match=r"tables are: clean\.articles,"):
            db.execute("select * from qqqqqqqqqqqq")
        with pytest.raises(duckdb.BinderException, match="titel"):
            db.execute("select titel from clean.articles")


def test_an_empty_lake_says_so(iceberg: SqlCatalog) -> None:
    with connect(iceberg) as db:
        assert db.execute("select 1").fetchall() == [(1,)]
        with pytest.raises(UnknownNameError, match="no tables yet"):
            db.execute("select * from raw.fetches")


def test_files_that_are_gone_are_named(iceberg: SqlCatalog, articles: Table) -> None:
    from pathlib import Path

    with connect(iceberg) as db:
        for task in articles.scan().plan_files():
            Path(plain_path(task.file.file_path)).unlink()
        with pytest.raises(UnavailableError, match="parquet"):
            db.execute("select title from clean.articles").fetchall()


def test_one_statement_never_mixes_two_states(iceberg: SqlCatalog) -> None:
    """A writer adds the same row to two tables and swaps both at once; a reader must count the same in both."""
    first, second = (make_table(iceberg, name, POINTER_FIELDS) for name in ("raw.one", "raw.two"))
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        with connect(iceberg) as db:
            while not stop.is_set():
                counts = db.execute("select (select count(*) from raw.one), (select count(*) from raw.two)").fetchone()
                if counts is None or counts[0] != counts[1]:
                    wrong.append(counts)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(12):
            _append_to_both(iceberg, (first, second), number)
    finally:
        stop.set()
        reader.join()
    assert wrong == []


def _append_to_both(iceberg: SqlCatalog, tables: tuple[Table, Table], number: int) -> None:
    from sqlalchemy import text

    old = {table.name()[-1]: iceberg.load_table(table.name()).metadata_location for table in tables}
    rows = [{"dataset": f"d{number}", "source": "news", "dt": DAY, "schema_version": 1}]
    new = {}
    for table in tables:
        shadow = iceberg.register_table(("feature", table.name()[-1]), old[table.name()[-1]])
        append(shadow, rows)
        new[table.name()[-1]] = shadow.metadata_location
        iceberg.drop_table(("feature", table.name()[-1]))
    with iceberg.engine.begin() as connection:
        for name, location in new.items():
            connection.execute(
                text(
                    "update iceberg_tables set metadata_location = :new where table_namespace='raw' and table_name=:n"
                ),
                {"new": location, "n": name},
            )


def test_a_connection_downloads_nothing(iceberg: SqlCatalog, articles: Table) -> None:
    with connect(iceberg) as db:
        settings = dict(
            db.execute(
                "select name, value from duckdb_settings() where name in "
                "('autoinstall_known_extensions', 'autoload_known_extensions')"
            ).fetchall()
        )
        loaded = db.execute("select extension_name from duckdb_extensions() where loaded").fetchall()
    assert settings == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    assert {("avro",), ("httpfs",), ("iceberg",)} <= set(loaded)


def test_a_store_that_does_not_answer_says_so(iceberg: SqlCatalog, articles: Table) -> None:
    from pathlib import Path

    with connect(iceberg) as db:
        append(articles, [record(DAY, 2, "c")])
        Path(plain_path(articles.metadata_location)).unlink()
        for name in ("articles", "articles_latest"):
            with pytest.raises(UnavailableError, match=r"metadata\.json.*make status"):
                db.execute(f"select 1 from clean.{name}")
        assert db.execute("select 1").fetchall() == [(1,)]
