"""The three readers that `verify` compares, each giving the rows of one table snapshot in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import StaticTable
from trino.exceptions import TrinoQueryError

from lakehouse.errors import DataError, LakehouseError, UnavailableError
from lakehouse.query.duck import open_duckdb
from lakehouse.query.frames import from_batch, from_rows
from lakehouse.query.trino import TrinoAccess, read_rows
from lakehouse.query.views import literal, quoted

BATCH_ROWS = 5_000
NO_ANSWER = (
    "NETWORK_CONNECTION",
    "Could not connect",
    "Could not establish connection",
    "Connection refused",
    "Timeout was reached",
    "timed out",
)


@dataclass(frozen=True, slots=True)
class TableState:
    """One table snapshot to read: where its metadata lies and the columns it has. `snapshot_id` None: no rows yet."""

    name: str
    table: StaticTable
    snapshot_id: int | None
    schema: pa.Schema


class Engine(Protocol):
    """Reads one table snapshot."""

    name: str

    def read(self, state: TableState) -> Iterator[pa.Table]:
        """All rows in batches with `state.schema`.

        Raises DataError where the engine cannot read them, UnavailableError where a server does not answer.
        """


class PyIcebergEngine:
    """PyIceberg, one data file at a time: its own batch reader would hold all files."""

    name = "pyiceberg"

    def read(self, state: TableState) -> Iterator[pa.Table]:
        """All rows in batches."""
        scan = state.table.scan(snapshot_id=state.snapshot_id)
        reader = ArrowScan(state.table.metadata, state.table.io, scan.projection(), AlwaysTrue())
        try:
            for task in scan.plan_files():
                for batch in reader.to_record_batches([task]):
                    yield from _slices(from_batch(batch, state.schema))
        except (OSError, pa.ArrowInvalid, ValueError) as error:
            raise _problem("PyIceberg", state, error) from error


class DuckEngine:
    """DuckDB over the same metadata file."""

    name = "duckdb"

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._connection: duckdb.DuckDBPyConnection | None = None

    def read(self, state: TableState) -> Iterator[pa.Table]:
        """All rows in batches."""
        if state.snapshot_id is None:
            return
        source = f"iceberg_scan({literal(state.table.metadata_location)}, snapshot_from_id={state.snapshot_id})"
        columns = ", ".join(quoted_column(name) for name in state.schema.names)
        try:
            if self._connection is None:
                self._connection = open_duckdb(self._properties)
            result = self._connection.execute(f"SELECT {columns} FROM {source}")
            for batch in result.to_arrow_reader(BATCH_ROWS):
                yield from_batch(batch, state.schema)
        except duckdb.Error as error:
            raise _problem("DuckDB", state, error) from error


class TrinoEngine:
    """Trino over the same table snapshot."""

    name = "trino"

    def __init__(self, access: TrinoAccess) -> None:
        self._access = access

    def read(self, state: TableState) -> Iterator[pa.Table]:
        """All rows in batches."""
        if state.snapshot_id is None:
            return
        columns = ", ".join(quoted_column(name) for name in state.schema.names)
        query = f"SELECT {columns} FROM {quoted(state.name)} FOR VERSION AS OF {state.snapshot_id}"
        try:
            for rows in read_rows(self._access, query):
                yield from_rows(rows, state.schema)
        except TrinoQueryError as error:
            raise DataError(f"Trino cannot read {state.name}: {error.message}") from error


def quoted_column(name: str) -> str:
    """A column name in double quotes."""
    return f'"{name}"'


def _problem(engine: str, state: TableState, error: Exception) -> LakehouseError:
    if any(word in str(error) for word in NO_ANSWER):
        return UnavailableError(
            f"{engine} cannot reach the files of {state.name} ({error}); check that the storage runs (`make status`)"
        )
    return DataError(f"{engine} cannot read {state.name}: {error}")


def _slices(frame: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, frame.num_rows, BATCH_ROWS):
        yield frame.slice(start, BATCH_ROWS)
