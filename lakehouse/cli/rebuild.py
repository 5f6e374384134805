"""`lakehouse rebuild`: the ledger's index made anew from tables, decisions and objects."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json


@click.command("rebuild")
@json_option
def command(as_json: bool) -> None:
    """Make the ledger's index of partitions and batches anew; tables, objects and the queue stay as they are.

    All of it or nothing: a run that is killed leaves the old index, and the same command finishes the work.
    """
    from lakehouse.materialize.rebuild import rebuild

    with opened_lake() as lake:
        done = rebuild(lake)
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(f"the index has {done.partitions} partitions and {done.batches} batches")
