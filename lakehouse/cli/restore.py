"""`lakehouse restore`: tables that the Iceberg catalog lost, found again by what lies in the warehouse."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.errors import ConfigError


@click.command("restore")
@click.option("--pick", "picks", multiple=True, metavar="TABLE=FILE", help="decide for a table: a metadata file's name")
@click.option("--apply", "apply", is_flag=True, help="do it; without this only the plan is shown")
@json_option
def command(*, picks: tuple[str, ...], apply: bool, as_json: bool) -> None:
    """Put tables back into an Iceberg catalog whose database was lost or restored from a backup.

    Each table's CURRENT mark says which metadata file is real. Ends with code 1 while something is undecided.
    Afterwards `lakehouse rebuild` makes the ledger's index.
    """
    from lakehouse.tables.recovery import Act, plan_recovery, recover
    from lakehouse.tables.storage import answering

    wanted = {}
    for pick in picks:
        table, _, file = pick.partition("=")
        if not file:
            raise ConfigError(f"--pick {pick} names no file; write --pick clean.articles=00012-….metadata.json")
        wanted[table] = file
    with opened_lake() as lake, answering("the warehouse"):
        plans = plan_recovery(lake.iceberg, wanted)
        for plan in plans if apply else []:
            recover(lake.iceberg, lake.committer.locks, plan)
    undecided = any(plan.act is Act.UNDECIDED for plan in plans)
    if as_json:
        print_json({"applied": apply, "undecided": undecided, "tables": [asdict(plan) for plan in plans]})
    else:
        rows = [(one.table, one.act, one.why, one.chosen, "\n".join(one.others)) for one in plans]
        print_table(("table", "what to do", "why", "metadata file", "also there"), rows)
        click.echo("done" if apply else "this is the plan; --apply does it")
    if undecided:
        sys.exit(1)
