"""DuckDB as a front door: every Iceberg table by name, resolved when a connection opens and before each statement.

All locations come from one SELECT, so one statement never mixes two states of the catalog. Not here: writing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, TypeVar
from urllib.parse import urlsplit

import duckdb
from pyiceberg.catalog import Catalog

from lakehouse.errors import UnavailableError, UnknownNameError
from lakehouse.query.extensions import CONFIG, load_extensions
from lakehouse.query.locations import near_names, read_locations
from lakehouse.query.views import (
    EFFECTIVE_TABLE,
    VIEW_SUFFIXES,
    effective_sql,
    holds_records,
    latest_sql,
    literal,
    may_hold_records,
    quoted,
)

_T = TypeVar("_T")
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

    Each statement sees all tables as of one instant. Raises UnknownNameError for a table that does not exist,
    UnavailableError where the storage or the catalog does not answer, and DuckDB's own errors for wrong SQL.
    """

    def __init__(self, iceberg: Catalog, properties: Mapping[str, str]) -> None:
        self._iceberg = iceberg
        self._locations: dict[str, str] = {}
        self._columns: dict[str, tuple[str, ...]] = {}
        self.duckdb = open_duckdb(properties)
        self.refresh()

    def refresh(self) -> Mapping[str, str]:
        """Point every table at its newest state; returns table name to metadata location."""
        locations = read_locations(self._iceberg)
        try:
            self._point_views(locations)
        except duckdb.IOException:
            # A location that was read a moment ago may be out of the table's log by now.
            locations = read_locations(self._iceberg)
            try:
                self._point_views(locations)
            except duckdb.IOException as error:
                raise _unreadable(error) from error
        return locations

    def sql(self, query: str, params: object = None) -> duckdb.DuckDBPyRelation:
        """A relation for a query, over the newest state of all tables; None for a statement without a result."""
        return self._run(query, lambda: self.duckdb.sql(query, params=params))

    def execute(self, query: str, params: object = None) -> duckdb.DuckDBPyConnection:
        """Run a statement over the newest state of all tables; fetch from what it returns."""
        return self._run(query, lambda: self.duckdb.execute(query, params))

    @property
    def names(self) -> tuple[str, ...]:
        """All tables and views by name."""
        records = [name for name, columns in self._columns.items() if holds_records(name, columns)]
        return tuple(sorted([*self._columns, *(name + suffix for name in records for suffix in VIEW_SUFFIXES)]))

    def close(self) -> None:
        """Close the connection; DuckDB's caches go with it."""
        self.duckdb.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, query: str, statement: Callable[[], _T]) -> _T:
        locations = self.refresh()
        try:
            return statement()
        except duckdb.CatalogException as error:
            raise self._named(error, query) from error
        except duckdb.IOException as error:
            if self.refresh() == locations:
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

    def _point_views(self, locations: Mapping[str, str]) -> None:
        changed = [name for name, location in locations.items() if self._locations.get(name) != location]
        gone = [name for name in self._columns if name not in locations]
        if not changed and not gone:
            return
        for name in gone:
            self._drop_table(name)
        for name in changed:
            self.duckdb.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.partition('.')[0])}")
            scan = f"SELECT * FROM iceberg_scan({literal(locations[name])})"
            self._create_view(name, scan)
            self._columns[name] = self._read_columns(name) if may_hold_records(name) else ()
        for name, columns in self._columns.items():
            if holds_records(name, columns):
                self._create_record_views(name, columns, EFFECTIVE_TABLE in locations)
        self._locations = dict(locations)

    def _create_record_views(self, table: str, columns: Sequence[str], pointers_exist: bool) -> None:
        none = f"SELECT * FROM {quoted(table)} WHERE false"
        self._create_view(f"{table}_effective", effective_sql(table) if pointers_exist else none)
        self._create_view(f"{table}_latest", latest_sql(table, columns))

    def _create_view(self, name: str, query: str) -> None:
        self.duckdb.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")

    def _read_columns(self, name: str) -> tuple[str, ...]:
        described = self.duckdb.execute(f"SELECT * FROM {quoted(name)} LIMIT 0").description or []
        return tuple(column[0] for column in described)

    def _drop_table(self, name: str) -> None:
        self._columns.pop(name, None)
        for view in (name, *(name + suffix for suffix in VIEW_SUFFIXES)):
            self.duckdb.execute(f"DROP VIEW IF EXISTS {quoted(view)}")


def connect(lake: Readable | Catalog, properties: Mapping[str, str] | None = None) -> Connection:
    """A DuckDB connection in which every Iceberg table of a lake is there by name, as `layer.table`.

    `lake` is an open lake or an Iceberg SQL catalog; `properties` are the `s3.*` properties to read with, those of
    the reader (or of the catalog) where left out. Records have the views `<table>_effective` and `<table>_latest`.
    """
    if isinstance(lake, Catalog):
        return Connection(lake, lake.properties if properties is None else properties)
    return Connection(lake.iceberg, lake.reader_properties if properties is None else properties)


def open_duckdb(properties: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that can read Iceberg tables from files and, with `s3.*` properties, from S3; times in UTC."""
    connection = duckdb.connect(config=CONFIG)
    load_extensions(connection)
    connection.execute("SET TimeZone = 'UTC'")
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


def _unreadable(error: duckdb.Error) -> UnavailableError:
    line = str(error).partition("\n")[0]
    return UnavailableError(
        f"a table's files could not be read ({line}); check that the storage runs (`make status`) and run the "
        "statement again"
    )
