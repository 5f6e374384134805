"""How commands speak: one JSON document with `--json`, else tables for people; logs go to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON document instead of text")


def print_json(value: Any, *, line: bool = False) -> None:
    """Print `value` as JSON; `line` keeps it on one line. Dates and other values become their text."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str, indent=None if line else 2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print rows as a table that fits the terminal; piped output keeps whole values."""
    table = Table(*columns, title=title, title_justify="left", header_style="bold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    width = None if sys.stdout.isatty() else 200
    Console(width=width).print(table)


def show(value: Mapping[str, Any], as_json: bool, human: Callable[[Mapping[str, Any]], None]) -> None:
    """Print `value` as JSON or through `human`."""
    if as_json:
        print_json(value)
    else:
        human(value)
