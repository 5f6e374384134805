"""`lakehouse sql`: one SQL statement over every table by name, through DuckDB."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from lakehouse.cli.output import json_option, print_json, print_table


@click.command("sql")
@click.argument("query")
@json_option
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="most rows to print")
@click.option("--as-of", "point", metavar="POINT", help="as of tag:NAME, fix:ID, before-fix:ID or a time")
def command(query: str, as_json: bool, limit: int, point: str | None) -> None:
    """Run QUERY (- reads it from standard input) with DuckDB.

    Tables are named layer.table, such as raw.fetches or clean.articles; records also have clean.articles_effective
    (the schema version that readers get by default) and clean.articles_latest (the newest revision of each page).
    `show all tables` lists them.
    """
    import duckdb

    from lakehouse.lake import open_lake
    from lakehouse.query import connect
    from lakehouse.query.past import connect_at
    from lakehouse.settings import load_settings

    text = sys.stdin.read() if query == "-" else query
    with open_lake(load_settings()) as lake, connect_at(lake, point) if point else connect(lake) as db:
        try:
            result = db.execute(text)
            described = result.description or []
            rows = result.fetchmany(limit + 1) if described else []
        except duckdb.Error as error:
            raise click.ClickException(str(error)) from error
    names = distinct_names([str(column[0]) for column in described])
    more = len(rows) > limit
    if as_json:
        objects = [dict(zip(names, map(plain_value, row), strict=True)) for row in rows[:limit]]
        types = [{"name": name, "type": str(column[1])} for name, column in zip(names, described, strict=True)]
        print_json({"columns": types, "rows": objects, "row_count": len(objects), "more": more})
        return
    if names:
        print_table(names, ([plain_value(value) for value in row] for row in rows[:limit]))
    if more:
        click.echo(f"the first {limit} rows; --limit prints more", err=True)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Column names with a number behind those that were there already."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def plain_value(value: Any) -> Any:
    """Bytes as hex; everything else as it is."""
    return value.hex() if isinstance(value, bytes | bytearray) else value
