"""`lakehouse complete`: which of the last days are complete, by source."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table


@click.command("complete")
@click.option("--days", type=click.IntRange(min=1), default=7, show_default=True, help="days before today")
@json_option
def command(days: int, as_json: bool) -> None:
    """How many due days of each enabled source ended, which did not, and which are far from the source's history."""
    from lakehouse.materialize.expected import completeness

    with opened_lake() as lake:
        found = completeness(lake, days)
    if as_json:
        print_json([{**asdict(one), "complete": one.complete} for one in found])
        return
    rows = [
        (
            one.source,
            f"{len(one.ended)} of {len(one.due)}" if one.first else "silent",
            ", ".join(map(str, one.unfinished)),
            ", ".join(map(str, one.missing)),
            "; ".join(one.far),
        )
        for one in found
    ]
    print_table(("source", "days ended", "unfinished", "missing", "far from its history"), rows)
