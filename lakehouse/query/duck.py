"""DuckDB as a front door: every Iceberg table by name, resolved when a connection opens and before each statement.

All locations come from one SELECT, so one statement never mixes two states of the catalog. Not here: writing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol, Self, TypeVar
from urllib.parse import urlsplit

import duckdb
import polars as pl
from pyiceberg.catalog import Catalog

from lakehouse.errors import UnavailableError, UnknownNameError
from lakehouse.query.extensions import CONFIG, load_extensions
from lakehouse.query.locations import near_names, read_locations
from lakehouse.query.shapes import Shape, Shapes
from lakehouse.query.views import (
    EFFECTIVE_TABLE,
    VIEW_SUFFIXES,
    holds_records,
    literal,
    may_hold_records,
    quoted,
    table_of,
    view_sql,
)

_T = TypeVar("_T")
_WORD = re.compile(r"\w+")
LISTING = frozenset({"show", "information_schema", "pg_catalog", "sqlite_master", "pragma"})
LISTING_FUNCTIONS = ("duckdb_", "pragma_", "pg_")
_MISSING = re.compile(r'Table with name "?(?P<name>[^\s"]+)"? does not exist', re.IGNORECASE)


class Readable(Protocol):
    """What a connection needs of a lake."""

    @property
    def iceberg(self) -> Catalog:
        """The Iceberg SQL catalog."""

    @property
    def reader_properties(self) -> Mapping[str, str]:
        """`s3.*` properties with the reader's credentials; empty where the tables are local files."""


class Connection:
    """A DuckDB connection in memory that sees every table of the lake by name.

    Each statement sees all tables as of one instant. Tables and views are made when a statement first names them, so a
    lake of many tables opens at once. Raises UnknownNameError for a table that does not exist, UnavailableError where
    the storage or the catalog does not answer, and DuckDB's own errors for wrong SQL.
    """

    def __init__(self, iceberg: Catalog, properties: Mapping[str, str]) -> None:
        self._iceberg = iceberg
        self._locations: Mapping[str, str] = {}
        self._shapes = Shapes(self._read)
        self._made: dict[str, tuple[str, ...]] = {}
        self._aims: dict[str, str] = {}
        self.duckdb = open_duckdb(properties)
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def refresh(self) -> Mapping[str, str]:
        """Point every table in use at its newest state; returns table name to metadata location, of all tables."""
        return self._point("")

    def sql(self, query: str, params: object = None) -> duckdb.DuckDBPyRelation:
        """A relation for a query, over the newest state of all tables; None for a statement without a result."""
        return self._run(query, lambda: self.duckdb.sql(query, params=params))

    def execute(self, query: str, params: object = None) -> duckdb.DuckDBPyConnection:
        """Run a statement over the newest state of all tables; fetch from what it returns."""
        return self._run(query, lambda: self.duckdb.execute(query, params))

    def scan(self, name: str) -> pl.LazyFrame:
        """A table or view as a lazy Polars frame: filters and columns that it is asked for are pushed into the scan.

        It reads while this connection is open, the newest state that the connection knows then.
        """
        relation: duckdb.DuckDBPyRelation = self.sql(f"SELECT * FROM {quoted(name)}")
        return relation.pl(lazy=True)

    def shapes_in(self, query: str) -> Mapping[str, Shape]:
        """The tables that a query's words name, also through views, with their shapes."""
        self._point(query)
        tables = {table for name in self._named_in(query) for table in self._tables_of(name)}
        return {table: self._shape(table) for table in sorted(tables)}

    @property
    def names(self) -> tuple[str, ...]:
        """All tables and views by name."""
        return tuple(sorted(self._all_names()))

    def close(self) -> None:
        """Close the connection; DuckDB's caches go with it."""
        self.duckdb.close()
        self._shapes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, query: str, statement: Callable[[], _T]) -> _T:
        locations = self._point(query)
        try:
            return statement()
        except duckdb.CatalogException as error:
            raise self._named(error, query) from error
        except duckdb.IOException as error:
            if self._point(query) == locations:
                raise _unreadable(error) from error
        return statement()

    def _named(self, error: duckdb.CatalogException, query: str) -> Exception:
        missing = _MISSING.search(str(error))
        if missing is None or missing["name"] in self.names:
            return error
        # DuckDB leaves the schema out of its message where the schema exists.
        whole = re.search(rf'[\w"]+\."?{re.escape(missing["name"])}\b', query)
        asked = whole[0].replace('"', "") if whole else missing["name"]
        return UnknownNameError(f"table {asked} does not exist; {near_names(asked, self.names)}")

    def _point(self, query: str) -> Mapping[str, str]:
        """Read all locations at once; make what `query` names and move what was made before."""
        for last in (False, True):
            self._locations = self._read_locations()
            try:
                self._make_views(query)
                break
            except duckdb.IOException as error:
                # A location that was read a moment ago may be out of the table's log by now.
                if last:
                    raise _unreadable(error) from error
        return self._locations

    def _read_locations(self) -> Mapping[str, str]:
        return read_locations(self._iceberg)

    def _make_views(self, query: str) -> None:
        for name in [name for name in self._made if table_of(name) not in self._locations]:
            self.duckdb.execute(f"DROP VIEW {quoted(name)}")
            del self._made[name]
        wanted = dict.fromkeys([*self._made, *self._named_in(query)])
        used = {table for name in wanted for table in self._tables_of(name)}
        changed = {name: made for name in wanted if self._made.get(name) != (made := self._definition(name))}
        if changed:
            # A view is read once when it is made; of the real table that would cost as much as a query.
            self._aim({table: self._shape(table).stub for table in used})
        for name, made in changed.items():
            self.duckdb.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.partition('.')[0])}")
            self.duckdb.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {made[0]}")
            self._made[name] = made
        self._aim({table: self._locations[table] for table in used})

    def _aim(self, locations: Mapping[str, str]) -> None:
        """Let the views of these tables read from other metadata files."""
        for table, location in locations.items():
            if self._aims.get(table) != location:
                self.duckdb.execute(f'SET VARIABLE "{_variable(table)}" = {literal(location)}')
                self._aims[table] = location

    def _tables_of(self, name: str) -> tuple[str, ...]:
        """The tables that a table or view reads."""
        table = table_of(name)
        if name.removeprefix(table) in {"_effective", "_latest"} and EFFECTIVE_TABLE in self._locations:
            return table, EFFECTIVE_TABLE
        return (table,)

    def _definition(self, name: str) -> tuple[str, ...]:
        """The SQL of a view and the columns it was made for, as the names of stubs."""
        return self._view_sql(name), *(self._shape(table).stub for table in self._tables_of(name))

    def _named_in(self, query: str) -> list[str]:
        words = frozenset(_WORD.findall(query.lower()))
        if words & LISTING or any(word.startswith(LISTING_FUNCTIONS) for word in words):
            return self._all_names()
        tables = [name for name in self._locations if name.partition(".")[2] in words]
        views = [
            name + suffix
            for name in self._locations
            for suffix in VIEW_SUFFIXES
            if name.partition(".")[2] + suffix in words and self._has_views(name)
        ]
        return [*tables, *views]

    def _all_names(self) -> list[str]:
        records = [name for name in self._locations if self._has_views(name)]
        return [*self._locations, *(name + suffix for name in records for suffix in VIEW_SUFFIXES)]

    def _has_views(self, table: str) -> bool:
        return may_hold_records(table) and holds_records(table, self._shape(table).columns)

    def _read(self, location: str) -> bytes:
        found = self.duckdb.execute("SELECT content FROM read_blob(?)", [location]).fetchone()
        if found is None:
            raise duckdb.IOException(f"{location} is not there")
        return bytes(found[0])

    def _shape(self, table: str) -> Shape:
        return self._shapes.of(self._locations[table])

    def _view_sql(self, name: str) -> str:
        table = table_of(name)
        rows = self._scan(table)
        if name == table:
            return f"SELECT * FROM {rows}"
        pointers = self._scan(EFFECTIVE_TABLE) if EFFECTIVE_TABLE in self._locations else None
        return view_sql(name, rows, pointers, self._shape(table))

    def _scan(self, table: str) -> str:
        """What the rows of a table are read from, in SQL."""
        return f"iceberg_scan(getvariable({literal(_variable(table))}))"


def connect(lake: Readable | Catalog, properties: Mapping[str, str] | None = None) -> Connection:
    """A DuckDB connection in which every Iceberg table of a lake is there by name, as `layer.table`.

    `lake` is an open lake or an Iceberg SQL catalog; `properties` are the `s3.*` properties to read with, those of
    the reader (or of the catalog) where left out. Records have the views `<table>_effective`, `<table>_latest` and
    `<table>_compat`.
    """
    if isinstance(lake, Catalog):
        return Connection(lake, lake.properties if properties is None else properties)
    return Connection(lake.iceberg, lake.reader_properties if properties is None else properties)


def open_duckdb(properties: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that can read Iceberg tables from files and, with `s3.*` properties, from S3; times in UTC."""
    connection = duckdb.connect(config=CONFIG)
    load_extensions(connection)
    connection.execute("SET TimeZone = 'UTC'")
    # The name that this function has in Trino; views use it.
    connection.execute("CREATE MACRO regexp_like(value, pattern) AS regexp_matches(value, pattern)")
    if properties.get("s3.endpoint"):
        connection.execute(_secret_sql(properties))
        # Files of tables never change, so what one request said of a file stays true.
        connection.execute("SET enable_http_metadata_cache = true")
    return connection


def _secret_sql(properties: Mapping[str, str]) -> str:
    endpoint = urlsplit(properties["s3.endpoint"])
    values = {
        "KEY_ID": literal(properties.get("s3.access-key-id", "")),
        "SECRET": literal(properties.get("s3.secret-access-key", "")),
        "ENDPOINT": literal(endpoint.netloc),
        "REGION": literal(properties.get("s3.region", "us-east-1")),
        "URL_STYLE": "'path'",
        "USE_SSL": "true" if endpoint.scheme == "https" else "false",
    }
    return f"CREATE SECRET lakehouse (TYPE s3, {', '.join(f'{key} {value}' for key, value in values.items())})"


def _variable(table: str) -> str:
    return f"lakehouse.{table}"


def _unreadable(error: duckdb.Error) -> UnavailableError:
    line = str(error).partition("\n")[0]
    return UnavailableError(
        f"a table's files could not be read ({line}); check that the storage runs (`make status`) and run the "
        "statement again"
    )
