"""Compare engines table by table: row counts and an order-free content hash of one and the same table snapshot.

All tables are taken as of one instant, so writers may go on meanwhile. Memory holds one batch (PyIceberg: one file).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable

from lakehouse.errors import DataError, UnavailableError, UnknownNameError
from lakehouse.query.engines import Engine, TableState
from lakehouse.query.frames import to_plain
from lakehouse.query.locations import near_names, read_locations
from lakehouse.tables.content import add_hashes, content_hash


@dataclass(frozen=True, slots=True)
class Reading:
    """What one engine read of a table: rows and content hash, or the error that kept it from reading."""

    engine: str
    rows: int
    hash: str
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table in all engines."""

    table: str
    snapshot_id: int | None
    readings: tuple[Reading, ...]

    @property
    def equal(self) -> bool:
        """Whether every engine read the same rows."""
        return len({(r.rows, r.hash) for r in self.readings}) == 1 and not any(r.error for r in self.readings)

    def describe(self) -> str:
        """One line naming the table and what each engine read."""
        parts = [r.error or f"{r.engine} {r.rows} rows, hash {r.hash}" for r in self.readings]
        return f"{self.table}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All tables in all engines."""

    engines: tuple[str, ...]
    tables: tuple[TableReport, ...]

    @property
    def differences(self) -> tuple[TableReport, ...]:
        """Tables that not every engine reads the same way."""
        return tuple(report for report in self.tables if not report.equal)

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON: `equal`, `engines`, `tables`, `differences`."""
        return {
            "equal": not self.differences,
            "engines": list(self.engines),
            "tables": [_table_dict(report) for report in self.tables],
            "differences": [report.describe() for report in self.differences],
        }


def verify(iceberg: Catalog, engines: Sequence[Engine], *, tables: Collection[str] | None = None) -> VerifyReport:
    """Read every table (or `tables`) with every engine and compare.

    Raises UnknownNameError for a table that does not exist, UnavailableError where a server does not answer. What an
    engine cannot read is a difference in the report.
    """
    locations = read_locations(iceberg)
    if tables is not None:
        unknown = sorted(set(tables) - set(locations))
        if unknown:
            raise UnknownNameError(f"verify: table {unknown[0]} does not exist; {near_names(unknown[0], locations)}")
        locations = {name: location for name, location in locations.items() if name in tables}
    reports = [_compare(name, location, iceberg.properties, engines) for name, location in locations.items()]
    return VerifyReport(tuple(engine.name for engine in engines), tuple(reports))


def _compare(name: str, location: str, properties: Mapping[str, str], engines: Sequence[Engine]) -> TableReport:
    try:
        state = _state(name, StaticTable.from_metadata(location, dict(properties)))
    except FileNotFoundError:
        error = f"{name}: the Iceberg catalog names {location}, which does not exist"
        return TableReport(name, None, tuple(Reading(engine.name, 0, add_hashes(), 0.0, error) for engine in engines))
    except OSError as error:
        raise UnavailableError(
            f"verify: the metadata of {name} could not be read ({error}); check that the storage runs (`make status`)"
        ) from error
    return TableReport(name, state.snapshot_id, tuple(_read(engine, state) for engine in engines))


def _state(name: str, table: StaticTable) -> TableState:
    snapshot = table.current_snapshot()
    if snapshot is None:
        return TableState(name, table, None, to_plain(table.schema().as_arrow()))
    schemas = table.schemas()
    schema = table.schema() if snapshot.schema_id is None else schemas[snapshot.schema_id]
    return TableState(name, table, snapshot.snapshot_id, to_plain(schema.as_arrow()))


def _read(engine: Engine, state: TableState) -> Reading:
    began = time.perf_counter()
    rows, total = 0, add_hashes()
    error = None
    try:
        for frame in engine.read(state):
            rows += frame.num_rows
            total = add_hashes(total, content_hash(frame))
    except DataError as problem:
        error = str(problem)
    return Reading(engine.name, rows, total, round(time.perf_counter() - began, 3), error)


def _table_dict(report: TableReport) -> dict[str, Any]:
    engines = {
        r.engine: {"rows": r.rows, "hash": r.hash, "seconds": r.seconds} | ({"error": r.error} if r.error else {})
        for r in report.readings
    }
    return {"table": report.table, "snapshot_id": report.snapshot_id, "equal": report.equal, "engines": engines}
