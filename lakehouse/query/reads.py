"""How much of the tables a query reads: data files opened and bytes read, of all there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from lakehouse.errors import ConfigError
from lakehouse.query.duck import Connection
from lakehouse.query.shapes import Shape
from lakehouse.tables.storage import plain_path


@dataclass(frozen=True, slots=True)
class TableReads:
    """Data files that a query opens of one table; `files` and `bytes` are all that the table has."""

    table: str
    files_read: int
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class QueryReads:
    """What a query reads: bytes as DuckDB counts them, of data files alone; `seconds` is the time it took."""

    tables: tuple[TableReads, ...]
    bytes_read: int
    rows: int
    seconds: float


def measure_reads(db: Connection, query: str) -> QueryReads:
    """Run a query and count what it reads; raises ConfigError for anything but one SELECT."""
    _require_select(db, query)
    shapes = db.shapes_in(query)
    (_, text), *_ = db.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchall()
    profile = json.loads(text)
    found = dict.fromkeys(shapes, 0)
    for scan in _scans(profile):
        table = _table_of(scan, shapes)
        if table is not None:
            found[table] += int(scan["extra_info"]["Total Files Read"])
    tables = tuple(TableReads(name, files, shapes[name].files, shapes[name].bytes) for name, files in found.items())
    rows = int(profile["children"][0]["children"][0]["operator_cardinality"])
    return QueryReads(tables, int(profile["total_bytes_read"]), rows, float(profile["latency"]))


def _require_select(db: Connection, query: str) -> None:
    try:
        statements = db.duckdb.extract_statements(query)
    except duckdb.ParserException:
        return
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ConfigError("explain runs the query to count what it reads, so it takes one SELECT and nothing else")


def _scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "Total Files Read" in node.get("extra_info", {}):
        yield node
    for child in node.get("children", []):
        yield from _scans(child)


def _table_of(scan: Mapping[str, Any], shapes: Mapping[str, Shape]) -> str | None:
    """The table that a scan reads, by where its files lie; None where it opened none."""
    path = plain_path(str(scan["extra_info"].get("Filename(s)", "")).partition(", ")[0])
    return next((name for name, shape in shapes.items() if path.startswith(f"{shape.folder.rstrip('/')}/")), None)
