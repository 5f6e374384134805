"""`lakehouse collect`: collect what is due of one source for a day and commit it to raw."""

from __future__ import annotations

import click

from lakehouse.cli.days import opened_lake, source_days
from lakehouse.cli.materialize import materialize_layers, print_report
from lakehouse.cli.output import json_option


@click.command("collect", help="Collect one source's due tasks for a day and commit them to the raw tables.")
@click.option("--source", required=True, help="the source to collect")
@click.option("--dt", help="business day, YYYY-MM-DD; today by default, an earlier one for sources addressed by date")
@json_option
def command(source: str, dt: str | None, as_json: bool) -> None:
    """Exits 0 when the day was collected, 1 when it was not, 2 for names and days that cannot be."""
    with opened_lake() as lake:
        days = source_days(lake, [source], dt, None, None)
        report = materialize_layers(lake, days, ("raw",), quiet=as_json)
    print_report(report, as_json)
