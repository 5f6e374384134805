"""`lakehouse effective`: which schema version of a day readers get by default; shown, moved with a reason, undone."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse.cli.days import day_options, opened_lake, source_days, words_options
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.materialize.versions import moves_of, set_version, undo_version
from lakehouse.tables.effective import Effective, current

source_option = click.option("--source", required=True, help="the source whose days are meant")


@click.group("effective", help="Which schema version of a day readers get by default.")
def command() -> None:
    """Pointers move; data files stay as they are."""


@command.command("show")
@source_option
@click.option("--history", is_flag=True, help="every move, with its reason")
@json_option
def show_command(source: str, history: bool, as_json: bool) -> None:
    """The effective version and fix of each day of a source."""
    with opened_lake() as lake:
        lake.catalog.source(source)
        moves = moves_of(lake, source) if history else []
        pointers = sorted(
            (one for one in current(lake.committer).values() if one.source == source), key=lambda one: one.dt
        )
    if as_json:
        print_json([asdict(one) for one in moves] if history else [asdict(one) for one in pointers])
    elif history:
        columns = ("decided", "day", "version", "fix", "reason", "who")
        print_table(columns, [(one.decided_at, *_line(one.pointer)[1:], one.reason, one.who) for one in moves])
    else:
        print_table(("dataset", "day", "version", "fix"), [_line(one) for one in pointers])


@command.command("set")
@source_option
@day_options
@click.option("--version", type=click.IntRange(min=1), required=True, help="the schema version that readers get")
@words_options
@json_option
def set_command(
    *,
    source: str,
    dt: str | None,
    first: str | None,
    last: str | None,
    version: int,
    reason: str,
    who: str,
    as_json: bool,
) -> None:
    """Make a schema version effective for some days, all at once."""
    with opened_lake() as lake:
        days = source_days(lake, [source], dt, first, last)
        moved = set_version(lake, days, version, reason=reason, who=who)
    _show_moved(moved, as_json)


@command.command("undo")
@source_option
@day_options
@words_options
@json_option
def undo_command(
    *, source: str, dt: str | None, first: str | None, last: str | None, reason: str, who: str, as_json: bool
) -> None:
    """Give readers what the last move of each day took away."""
    with opened_lake() as lake:
        days = source_days(lake, [source], dt, first, last)
        moved = undo_version(lake, days, reason=reason, who=who)
    _show_moved(moved, as_json)


def _show_moved(moved: list[Effective], as_json: bool) -> None:
    if as_json:
        print_json([asdict(one) for one in moved])
    elif moved:
        print_table(("dataset", "day", "version", "fix"), [_line(one) for one in moved])
    else:
        click.echo("nothing moved: the days are as you want them already")


def _line(pointer: Effective) -> tuple[str, str, int, str]:
    return pointer.dataset, f"{pointer.source}|{pointer.dt}", pointer.schema_version, (pointer.fix_id or "")[:8]
