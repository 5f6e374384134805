"""`lakehouse diff`: one partition at two points of its history, row by row."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.errors import ConfigError
from lakehouse.lake import Lake
from lakehouse.model.partition import Partition
from lakehouse.tables.differences import RowDiff, changed_columns, compare_rows
from lakehouse.tables.history import FORMS, read_at

SHOWN = 60


@click.command("diff", help=f"Compare a partition at two points of its history: {FORMS}.")
@click.argument("table")
@click.option("--partition", "place", required=True, metavar="SOURCE/DT/VERSION")
@click.option("--from", "start", required=True, metavar="POINT", help="the earlier point")
@click.option("--to", "end", default="now", show_default=True, metavar="POINT", help="the later point")
@json_option
def command(table: str, place: str, start: str, end: str, as_json: bool) -> None:
    """Exits 0 also where rows differ."""
    with opened_lake() as lake:
        lake.catalog.table_schema(table, None)
        partition = parse_partition(lake, place)
        old, new = (read_at(lake.committer, lake.decisions, table, partition, point) for point in (start, end))
    diff = compare_rows(table, old, new)
    if as_json:
        print_json({"table": table, "partition": place, "counts": asdict(diff.counts()), **asdict(diff)})
    else:
        print_diff(table, diff)


def parse_partition(lake: Lake, place: str) -> Partition:
    """`SOURCE/DT/VERSION`; raises ConfigError for another form."""
    parts = place.split("/")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise ConfigError(f"partition {place!r} is not in the form SOURCE/DT/VERSION, such as demo_daily/2025-03-01/1")
    return Partition(parts[0], lake.clock.parse_day(parts[1]), int(parts[2]))


def print_diff(name: str, diff: RowDiff) -> None:
    """The rows that differ as a table for people, and their numbers."""
    rows = [("added", _key(row, diff.key), "") for row in diff.added]
    rows += [("removed", _key(row, diff.key), "") for row in diff.removed]
    for old, new in diff.changed:
        lines = [f"{one}: {_short(old[one])} → {_short(new[one])}" for one in changed_columns(old, new)]
        rows.append(("changed", _key(old, diff.key), "\n".join(lines)))
    if rows:
        print_table((name, "row", "what changed"), rows)
    click.echo(f"{name}: {len(diff.added)} added, {len(diff.removed)} removed, {len(diff.changed)} changed")


def _key(row: dict[str, Any], key: tuple[str, ...]) -> str:
    return " ".join(str(row[name]) for name in key)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
