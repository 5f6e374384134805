"""`lakehouse reconcile`: catalog, ledger, tables and objects compared."""

from __future__ import annotations

import sys

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table


@click.command("reconcile")
@click.option("--sample", type=click.IntRange(min=1), default=200, show_default=True, help="pages looked for")
@click.option("--all", "every", is_flag=True, help="look for the page of every row, and for pages without a row")
@click.option("--days", type=click.IntRange(min=1), default=7, show_default=True, help="days the schedules are held to")
@click.option("--repair", is_flag=True, help="mend what is safe to mend: rows of the index, pointers, CURRENT marks")
@json_option
def command(*, sample: int, every: bool, days: int, repair: bool, as_json: bool) -> None:
    """Name everything that one of catalog, ledger, tables and objects says and another does not.

    Ends with code 1 where something is found that was not repaired.
    """
    from lakehouse.materialize.reconcile import Scope, reconcile

    with opened_lake() as lake:
        found = list(reconcile(lake, Scope(None if every else sample, days)))
        for one in found:
            if repair and one.mend is not None:
                one.mend()
    left = [one for one in found if not repair or one.mend is None]
    if as_json:
        print_json(
            {"found": len(found), "repaired": len(found) - len(left), "findings": [one.as_dict() for one in found]}
        )
    elif found:
        rows = [(one.kind, one.subject, one.detail, *_words(one.as_dict(), repair)) for one in found]
        print_table(("code", "what", "detail", "it means", "to do"), rows)
    else:
        click.echo("catalog, ledger, tables and objects say the same")
    if left:
        sys.exit(1)


def _words(values: dict[str, object], repair: bool) -> tuple[object, object]:
    done = "repaired" if repair and values["repairable"] else values["remedy"]
    return values["meaning"], done
