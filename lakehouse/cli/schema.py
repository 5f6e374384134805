"""`lakehouse schema`: versions of datasets: what each changes, when it was registered, which days it covers."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.errors import CatalogError, UnknownNameError
from lakehouse.settings import load_settings
from lakehouse.specs.differences import compare_versions

dataset_argument = click.argument("dataset")


@click.group("schema", help="Versions of datasets: start one, compare, check, and see which days each covers.")
def command() -> None:
    """A version that rows were written under never changes; data that changes gets the next number."""


@command.command("new")
@dataset_argument
@click.option("--changes", required=True, help="what the version changes and why")
@click.option("--reviewed-by", required=True, help="who looked at it")
def new_command(dataset: str, changes: str, reviewed_by: str) -> None:
    """Write the next version's file as a copy of the newest, for you to change."""
    from lakehouse.specs.drafts import draft_version

    path = draft_version(load_settings().catalog_dir, dataset, changes=changes, reviewed_by=reviewed_by)
    click.echo(
        f"wrote {path}. Change its fields (one that is renamed or gets another type says `supersedes: OLD_NAME`), run "
        "`lakehouse schema check`, then let a source write it: `writes: "
        f"{dataset}@{path.stem.removeprefix('v')}`"
    )


@command.command("diff")
@dataset_argument
@click.argument("old", type=click.IntRange(min=1))
@click.argument("new", type=click.IntRange(min=1))
@json_option
def diff_command(dataset: str, old: int, new: int, as_json: bool) -> None:
    """What changes from version OLD to version NEW, field by field."""
    with opened_lake() as lake:
        found = compare_versions(lake.catalog.schema(dataset, old), lake.catalog.schema(dataset, new))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        click.echo(str(one))
    if not found:
        click.echo("the two versions are the same")


@command.command("check")
@json_option
def check_command(as_json: bool) -> None:
    """Problems of catalog/, versions that other branches claim too, and registered versions that changed."""
    from lakehouse.materialize.schemas import check_schemas

    with opened_lake() as lake:
        try:
            found = check_schemas(lake)
        except CatalogError as error:
            found = list(error.problems)
    if as_json:
        print_json({"ok": not found, "problems": [asdict(one) for one in found]})
    else:
        click.echo("\n".join(map(str, found)) if found else "every version is right, registered ones are as they were")
    if found:
        sys.exit(CatalogError.exit_code)


@command.command("history")
@click.argument("dataset", required=False)
@click.option("--field", help="only versions that have this field")
@json_option
def history_command(dataset: str | None, field: str | None, as_json: bool) -> None:
    """Each version: what it changed and why, who reviewed it, since when it counts, and which days it covers."""
    from lakehouse.materialize.schemas import version_history

    with opened_lake() as lake:
        names = [dataset] if dataset else sorted(lake.catalog.schemas)
        lines = [line for name in names for line in version_history(lake, name)]
    if field is not None:
        known = sorted({name for line in lines for name in line.fields})
        lines = [line for line in lines if field in line.fields]
        if not lines:
            raise UnknownNameError(f"no version has a field {field!r}; fields are {', '.join(known)}")
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    print_table(
        ("version", "changes", "fields", "reviewed by", "registered", "commit", "days"), map(_history_row, lines)
    )


def _history_row(line: Any) -> tuple[Any, ...]:
    days = "; ".join(f"{one.source} {one.first}..{one.last} ({one.days})" for one in line.coverage)
    changed = "; ".join(line.changed) or ", ".join(line.fields)
    name = f"{line.dataset}@{line.version}"
    registered = line.registered_at and line.registered_at.date()
    return name, line.changes, changed, line.reviewed_by, registered, (line.commit or "")[:8], days
