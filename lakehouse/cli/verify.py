"""`lakehouse verify`: do PyIceberg, DuckDB and Trino read the same rows from every table?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.output import json_option, print_table, show
from lakehouse.errors import InvariantError, SettingError

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.query.engines import Engine

NAMES = ("pyiceberg", "duckdb", "trino")


@click.command("verify")
@json_option
@click.option("--engine", "engines", multiple=True, type=click.Choice(NAMES), help="compare only these; repeatable")
@click.option("--table", "tables", multiple=True, help="only these tables, as layer.table; repeatable")
def command(as_json: bool, engines: Sequence[str], tables: Sequence[str]) -> None:
    """Compare row counts and content hashes table by table.

    Local profile: PyIceberg and DuckDB. Server profile: Trino too. Ends with 4 and names table, engines and counts
    where they differ.
    """
    from lakehouse.lake import open_lake
    from lakehouse.query import verify
    from lakehouse.settings import load_settings

    with open_lake(load_settings()) as lake:
        report = verify(lake.iceberg, open_engines(lake, engines), tables=tables or None)
    show(report.as_dict(), as_json, _print_report)
    if report.differences:
        lines = "\n".join(f"  {difference.describe()}" for difference in report.differences)
        raise InvariantError(f"verify: engines differ on {len(report.differences)} tables:\n{lines}")


def open_engines(lake: Lake, names: Sequence[str] = ()) -> list[Engine]:
    """The engines by name, or all that the profile has; raises SettingError for Trino without its address."""
    from lakehouse.query.engines import DuckEngine, PyIcebergEngine, TrinoEngine
    from lakehouse.query.trino import TrinoAccess

    settings = lake.settings
    has_trino = settings.trino_host is not None and settings.trino_port is not None
    engines: list[Engine] = []
    for name in dict.fromkeys(names or (NAMES if has_trino else NAMES[:2])):
        if name == "pyiceberg":
            engines.append(PyIcebergEngine())
        elif name == "duckdb":
            engines.append(DuckEngine(lake.reader_properties))
        elif settings.trino_host is None or settings.trino_port is None:
            raise SettingError(
                "verify: engine trino needs LAKEHOUSE_PROFILE=server with LAKEHOUSE_TRINO_HOST and _PORT"
            )
        else:
            engines.append(TrinoEngine(TrinoAccess(settings.trino_host, settings.trino_port, settings.trino_user)))
    return engines


def _print_report(report: Mapping[str, Any]) -> None:
    rows = []
    for table in report["tables"]:
        for engine, reading in table["engines"].items():
            verdict = "equal" if table["equal"] else "DIFFERENT"
            rows.append((table["table"], engine, reading["rows"], reading["hash"], reading["seconds"], verdict))
    print_table(("table", "engine", "rows", "content hash", "seconds", "verdict"), rows)
    if not rows:
        click.echo("this lake has no tables yet")
