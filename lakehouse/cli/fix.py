"""`lakehouse fix`: correct published days with a reason; list, compare, roll back and redo what was corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from lakehouse.cli.days import day_options, opened_lake, source_days, words_options
from lakehouse.cli.diff import print_diff
from lakehouse.cli.materialize import shown_progress
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.materialize.fixing import diff_fix
from lakehouse.materialize.given_rows import read_given_rows
from lakehouse.tables.fix_branches import branch_fix, drop_fix_branches
from lakehouse.tables.fixes import Code, Fix, all_fixes, days_of, find_fix


@click.group("fix", help="Correct published days with a reason, and undo it without loss.")
def command() -> None:
    """Every fix is kept with what was there before; nothing is lost by any of these."""


@command.command("apply")
@click.option("--source", required=True, help="the source whose days are corrected")
@day_options
@click.option("--code", type=click.Choice([one.value for one in Code]), required=True, help="what was wrong")
@click.option("--rows", "file", type=click.Path(path_type=Path), help="the rows of the days: Parquet or JSON lines")
@words_options
@json_option
def apply_command(
    *,
    source: str,
    dt: str | None,
    first: str | None,
    last: str | None,
    code: str,
    file: Path | None,
    reason: str,
    who: str,
    as_json: bool,
) -> None:
    """Make clean and feature partitions anew with the catalog of now, and record why and what changed.

    With --rows the days get exactly the rows of a file. All days of one command are one fix.
    """
    with opened_lake() as lake, shown_progress(quiet=as_json) as say:
        days = source_days(lake, [source], dt, first, last)
        given = read_given_rows(lake, days, file) if file is not None else None
        fixes = apply_fixes(lake, days, code=Code(code), reason=reason, who=who, given=given, progress=say)
    _show_all(fixes, as_json)


@command.command("list")
@click.option("--source", help="only this source")
@json_option
def list_command(source: str | None, as_json: bool) -> None:
    """All fixes, oldest first."""
    with opened_lake() as lake:
        fixes = [fix for fix in all_fixes(lake.decisions) if source in {None, fix.day.source}]
    _show_all(fixes, as_json)


@command.command("show")
@click.argument("fix_id")
@json_option
def show_command(fix_id: str, as_json: bool) -> None:
    """One fix: why, who, its days, what it changed by table and column, and the files from before and after."""
    with opened_lake() as lake:
        fixes = all_fixes(lake.decisions)
        fix = find_fix(fixes, fix_id)
    if as_json:
        print_json(asdict(fix) | {"unit": fix.unit})
        return
    _show_all(days_of(fixes, fix), as_json=False)
    print_table(
        ("table", "added", "removed", "changed", "columns"),
        [
            (table, counts["added"], counts["removed"], counts["changed"], _columns(counts["columns"]))
            for table, counts in (fix.changes or {}).items()
        ],
    )


@command.command("diff")
@click.argument("fix_id")
@click.option("--table", help="only this table")
@json_option
def diff_command(fix_id: str, table: str | None, as_json: bool) -> None:
    """The rows that a fix added, removed and changed."""
    with opened_lake() as lake:
        fix = find_fix(all_fixes(lake.decisions), fix_id)
        diffs = {name: diff for name, diff in diff_fix(lake, fix).items() if table in {None, name}}
    if as_json:
        print_json({name: asdict(diff) for name, diff in diffs.items()})
        return
    for name, diff in diffs.items():
        print_diff(name, diff)


@command.command("rollback")
@click.argument("fix_id")
@click.option("--dt", help="only this day of the fix, YYYY-MM-DD; all of its days by default")
@words_options
@click.option("--rerun", is_flag=True, help="rows came after the fix: make the day anew with the template of before")
@json_option
def rollback_command(*, fix_id: str, dt: str | None, reason: str, who: str, rerun: bool, as_json: bool) -> None:
    """Bring back what was there before a fix, on all its days and features included; later commits to others stay."""
    with opened_lake() as lake, shown_progress(quiet=as_json) as say:
        day = lake.clock.parse_day(dt) if dt else None
        fixes = roll_back(lake, fix_id, reason=reason, who=who, rerun=rerun, dt=day, progress=say)
    _show_all(fixes, as_json)


@command.command("redo")
@click.argument("fix_id")
@click.option("--dt", help="only this day of the fix, YYYY-MM-DD; all of its days by default")
@words_options
@json_option
def redo_command(*, fix_id: str, dt: str | None, reason: str, who: str, as_json: bool) -> None:
    """Apply a fix again that was rolled back, on all its days."""
    with opened_lake() as lake, shown_progress(quiet=as_json) as say:
        day = lake.clock.parse_day(dt) if dt else None
        fixes = redo(lake, fix_id, reason=reason, who=who, dt=day, progress=say)
    _show_all(fixes, as_json)


@command.command("branch")
@click.argument("fix_id")
@click.option("--before", is_flag=True, help="as it was before the fix, not after it")
@click.option("--days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="upkeep drops it after them")
@click.option("--drop", is_flag=True, help="drop the branch")
@json_option
def branch_command(*, fix_id: str, before: bool, days: float, drop: bool, as_json: bool) -> None:
    """Show Trino the tables with the days of a fix as they were after (or before) it, on a branch of each table."""
    with opened_lake() as lake:
        fixes = all_fixes(lake.decisions)
        fix = find_fix(fixes, fix_id)
        if drop:
            found = drop_fix_branches(lake.committer, fix, before=before)
        else:
            found = branch_fix(lake.committer, fixes, fix, before=before, age=timedelta(days=days))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    done = "dropped" if drop else "made"
    print_table(("table", "branch", done), [(one.table, one.name, "yes" if one.changed else "no") for one in found])
    if not drop:
        click.echo(f"in Trino: {found[0].table} FOR VERSION AS OF '{found[0].name}'")


def describe(fix: Fix) -> dict[str, Any]:
    """A fix in a line of a list, ready for JSON."""
    totals = {name: sum(one[name] for one in (fix.changes or {}).values()) for name in ("added", "removed", "changed")}
    return {
        "fix_id": fix.fix_id,
        "unit": fix.unit,
        "day": fix.day.key,
        "dataset": fix.dataset,
        "schema_version": fix.partition.schema_version,
        "status": fix.status.value,
        "code": fix.code,
        "reason": fix.reason,
        "who": fix.who,
        "decided_at": fix.decided_at,
        "rows": totals,
        "changes": fix.changes,
    }


def _show_all(fixes: list[Fix], as_json: bool) -> None:
    if as_json:
        print_json([describe(fix) for fix in fixes])
        return
    columns = ("fix", "day", "status", "code", "reason", "who", "added", "removed", "changed")
    print_table(columns, [_line(describe(fix)) for fix in fixes])


def _line(fix: Mapping[str, Any]) -> tuple[Any, ...]:
    words = (fix["fix_id"][:8], fix["day"], fix["status"], fix["code"], fix["reason"], fix["who"])
    return (*words, *fix["rows"].values())


def _columns(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items())
