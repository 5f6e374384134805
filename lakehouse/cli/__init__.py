"""The `lakehouse` command: one command group a file, loaded only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from lakehouse import __version__
from lakehouse.errors import LakehouseError

COMMANDS = {
    "accept": "prove on the live system what this project promises",
    "check": "validate all of catalog/",
    "collect": "collect one source's due tasks for a day",
    "complete": "which of the last days are complete, by source",
    "demo": "run the main job on the demo site",
    "diff": "compare a partition at two points of its history, row by row",
    "doctor": "check versions, ports, disk, clock, credentials and servers",
    "effective": "which schema version of a day readers get by default",
    "explain": "how many files and bytes of the tables a query reads",
    "extract": "parse page files and print one JSON line a page",
    "fix": "correct published days with a reason; roll back and redo",
    "lineage": "which partitions one was made from, and which were made from it",
    "materialize": "make raw, clean and feature partitions without Dagster",
    "rebuild": "make the ledger's index anew from tables and objects",
    "reconcile": "compare catalog, ledger, tables and objects; name what does not fit",
    "restore": "put tables back into an Iceberg catalog that was lost",
    "schema": "versions of datasets: start, compare, check, and which days each covers",
    "serve": "open the Dagster UI on this lake",
    "sql": "query every table by name with DuckDB",
    "stat": "outcomes by source and whether the books balance",
    "trace": "lead a row back to its page",
    "upkeep": "keep tables fast and small: retention, compaction, manifests, expiry, orphans",
    "verify": "compare PyIceberg, DuckDB and Trino table by table",
    "views": "make or mend the views in Trino",
}


class LazyGroup(click.Group):
    """Loads `lakehouse.cli.<command>` on first use and turns our errors into a message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"lakehouse.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            click.echo(f"lakehouse: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lakehouse")
def main() -> None:
    """Collect pages into an Iceberg lakehouse; trust, query, repair and replay them."""
