"""Every table as it was at one point, through DuckDB: at a tag or a time, or with the days of a fix before or after.

A tag or a time is a table snapshot of each table, as long as upkeep keeps it. A fix tells of its own days for ever:
they hold what they held before or after it, the pointers of readers too, and everything else is as of now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import uuid4

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog

from lakehouse.errors import UnknownNameError
from lakehouse.model.partition import Partition
from lakehouse.query.duck import Connection, Readable
from lakehouse.query.locations import read_locations
from lakehouse.query.views import EFFECTIVE_TABLE, literal, quoted
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decisions
from lakehouse.tables.fixes import Fix, all_fixes, days_of, find_fix, led_to, read_rows
from lakehouse.tables.history import snapshot_at
from lakehouse.tables.normalize import to_arrow

POINTS = "tag:NAME, fix:ID, before-fix:ID, or a time such as 2025-03-01T08:00"
PARTITION = ("source", "dt", "schema_version")


class Lake(Readable, Protocol):
    """What is needed of a lake to see its past."""

    @property
    def committer(self) -> Committer:
        """Reads the files of fixes."""

    @property
    def decisions(self) -> Decisions:
        """Knows the fixes."""


class SnapshotConnection(Connection):
    """A connection whose tables stand still at the table snapshots of a tag or a time."""

    def __init__(self, iceberg: Catalog, properties: Mapping[str, str], decisions: Decisions, point: str) -> None:
        self._point_name = point
        self._decisions = decisions
        self._reasons: dict[str, str] = {}
        self._pinned: dict[str, str] | None = None
        super().__init__(iceberg, properties)

    def _read_locations(self) -> Mapping[str, str]:
        if self._pinned is None:
            self._pinned = {}
            for name, location in read_locations(self._iceberg).items():
                try:
                    self._pinned[name] = self._pin(name, location)
                except UnknownNameError as error:
                    self._reasons[name] = str(error)
        return self._pinned

    def _pin(self, name: str, location: str) -> str:
        """A metadata file like the newest, whose current table snapshot is the one of the point."""
        newest = self._shapes.metadata(location)
        wanted = snapshot_at(newest, name, self._point_name, self._decisions.clock)
        metadata = newest.model_copy(update={"current_snapshot_id": wanted, "refs": {}, "snapshot_log": []})
        path = self._shapes.folder / f"{uuid4().hex}.metadata.json"
        path.write_text(metadata.model_dump_json())
        return str(path)

    def _has_views(self, table: str) -> bool:
        """Without the pointers of then nobody can say what was effective."""
        return EFFECTIVE_TABLE in self._locations and super()._has_views(table)

    def _named(self, error: duckdb.CatalogException, query: str) -> Exception:
        found = super()._named(error, query)
        for table, reason in self._reasons.items():
            if isinstance(found, UnknownNameError) and table in query.replace('"', ""):
                return UnknownNameError(f"{table} cannot be read as of {self._point_name}: {reason}")
        if isinstance(found, UnknownNameError) and EFFECTIVE_TABLE in self._reasons:
            return UnknownNameError(
                f"{found}; views of records need {EFFECTIVE_TABLE}: {self._reasons[EFFECTIVE_TABLE]}"
            )
        return found


class FixConnection(Connection):
    """A connection in which the days of a fix hold what they held before or after it."""

    def __init__(self, lake: Lake, properties: Mapping[str, str], days: Sequence[Fix], *, before: bool) -> None:
        self._others: dict[str, str] = {}
        self._columns: dict[str, list[str]] = {}
        super().__init__(lake.iceberg, properties)
        try:
            self._show(lake.committer, days, before=before)
        except BaseException:
            self.close()
            raise

    def _show(self, committer: Committer, days: Sequence[Fix], *, before: bool) -> None:
        for table in days[0].before:
            states = [(one, one.before[table] if before else led_to(one)[table]) for one in days]
            places = [Partition(one.day.source, one.day.dt, state.schema_version) for one, state in states]
            rows = [read_rows(committer, state, one.day) for one, state in states]
            self._put(table, [dict(zip(PARTITION, _values(one), strict=True)) for one in places], rows)
        told = [{"dataset": one.dataset, "source": one.day.source, "dt": str(one.day.dt)} for one in days]
        pointers = to_arrow(_pointers(days, before=before), committer.catalog.table_schema(EFFECTIVE_TABLE))
        self._put(EFFECTIVE_TABLE, told, [pointers])

    def _put(self, table: str, places: Sequence[Mapping[str, object]], frames: Sequence[pa.Table]) -> None:
        """Show these rows in place of those that a table has at some places."""
        rows = pa.concat_tables(frames, promote_options="default")
        name = f"past.{table.replace('.', '_')}"
        self.duckdb.execute("CREATE SCHEMA IF NOT EXISTS past")
        self.duckdb.register("rows_of_past", rows)
        self.duckdb.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM rows_of_past")
        self.duckdb.unregister("rows_of_past")
        self._columns[table] = rows.column_names
        self._others[table] = " AND ".join(
            f"NOT ({' AND '.join(f'{key} = {literal(str(value))}' for key, value in place.items())})"
            for place in places
        )

    def _scan(self, table: str) -> str:
        rows = super()._scan(table)
        if table not in self._others:
            return rows
        columns = ", ".join(f'"{name}"' for name in self._columns[table])
        past = quoted(f"past.{table.replace('.', '_')}")
        return f"(SELECT {columns} FROM {rows} WHERE {self._others[table]} UNION ALL SELECT {columns} FROM {past})"


def connect_at(lake: Lake, point: str, properties: Mapping[str, str] | None = None) -> Connection:
    """A connection that sees every table of a lake at `point`, see POINTS; else it is as `connect` gives it.

    Raises UnknownNameError for a fix that is not there, or whose files are gone, ConfigError for another point.
    """
    given = lake.reader_properties if properties is None else properties
    kind, _, name = point.partition(":")
    if kind not in {"fix", "before-fix"}:
        return SnapshotConnection(lake.iceberg, given, lake.decisions, point)
    fixes = all_fixes(lake.decisions)
    return FixConnection(lake, given, days_of(fixes, find_fix(fixes, name)), before=kind == "before-fix")


def _values(place: Partition) -> tuple[str, str, int]:
    return place.source, str(place.dt), place.schema_version


def _pointers(days: Sequence[Fix], *, before: bool) -> list[dict[str, object]]:
    """What was effective on each day of a fix before or after it."""
    found: list[dict[str, object]] = []
    for one in days:
        row: dict[str, object] = {"dataset": one.dataset, "source": one.day.source, "dt": one.day.dt}
        if not before:
            found.append({**row, "schema_version": one.partition.schema_version, "fix_id": one.fix_id})
        elif one.pointer is not None:
            found.append({**row, "schema_version": one.pointer.schema_version, "fix_id": one.pointer.fix_id})
    return found
