"""`lakehouse stat`: what was collected and what became of it, and whether the books balance, from the tables."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.lake import Lake
from lakehouse.materialize.books import DayBooks, audit_all_books
from lakehouse.model.record import Outcome


@click.command("stat", help="Outcomes by source, rows, rejects by reason, and whether the books balance.")
@click.option("--source", help="only this source")
@click.option("--dt", help="only this business day, YYYY-MM-DD")
@json_option
def command(source: str | None, dt: str | None, as_json: bool) -> None:
    """Exits 0 when the books balance, 1 when they do not."""
    with opened_lake() as lake:
        if source is not None:
            lake.catalog.source(source)
        if dt is not None:
            lake.clock.parse_day(dt)
        report = take_stock(lake, source, dt)
    if as_json:
        print_json(report)
    else:
        print_stock(report)
    if not report["balanced"]:
        sys.exit(1)


def take_stock(lake: Lake, source: str | None = None, dt: str | None = None) -> dict[str, Any]:
    """The books of all days (of one source, of one day) and the rejects by reason, ready for JSON."""
    days = [
        day for day in audit_all_books(lake).days if source in (None, day.source) and dt in (None, day.dt.isoformat())
    ]
    cleaned = [day for day in days if day.cleaned]
    problems = [problem for day in cleaned for problem in day.problems]
    rejects = _rejects(lake, source, dt)
    return {
        "balanced": not problems,
        "problems": problems,
        "not_cleaned_yet": [f"{day.source}|{day.dt}" for day in days if not day.cleaned],
        "totals": _sums(days),
        "sources": {name: _sums([day for day in days if day.source == name]) for name in _names(days)},
        "days": [_day_row(day) for day in days],
        "rejects": rejects,
    }


def _names(days: Sequence[DayBooks]) -> list[str]:
    return sorted({day.source for day in days})


def _sums(days: Sequence[DayBooks]) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    for day in days:
        outcomes.update(day.outcomes)
    return {
        "days": len(days),
        "fetches": sum(day.fetches for day in days),
        "outcomes": {outcome.value: outcomes[outcome.value] for outcome in Outcome},
        "rows": sum(day.rows for day in days),
        "balanced": all(day.balanced for day in days if day.cleaned),
    }


def _day_row(day: DayBooks) -> dict[str, Any]:
    return {
        "source": day.source,
        "dt": day.dt.isoformat(),
        "fetches": day.fetches,
        "outcomes": dict(day.outcomes),
        "outcomes_sum": sum(day.outcomes.values()),
        "rows_out": day.rows_out,
        "rows": day.rows,
        "balanced": day.balanced if day.cleaned else None,
    }


def _rejects(lake: Lake, source: str | None, dt: str | None) -> dict[str, dict[str, int]]:
    """Rejects by source and reason."""
    frame = lake.committer.scan("clean.rejects", None, ["source", "dt", "reason"])
    found: dict[str, Counter[str]] = {}
    for row in frame.to_pylist():
        if source in (None, row["source"]) and dt in (None, row["dt"].isoformat()):
            found.setdefault(row["source"], Counter())[row["reason"]] += 1
    return {name: dict(sorted(reasons.items())) for name, reasons in sorted(found.items())}


def print_stock(report: dict[str, Any]) -> None:
    """The report for people."""
    outcomes = [outcome.value for outcome in Outcome]
    rows = [
        (name, stock["days"], stock["fetches"], *(stock["outcomes"][key] for key in outcomes), stock["rows"])
        for name, stock in [*report["sources"].items(), ("all", report["totals"])]
    ]
    print_table(("source", "days", "fetches", *outcomes, "rows"), rows, title="outcomes of fetches by source")
    reasons = [(name, why, count) for name, by in report["rejects"].items() for why, count in by.items()]
    if reasons:
        print_table(("source", "reason", "rejects"), reasons, title="rejects by reason")
    for key in report["not_cleaned_yet"]:
        click.echo(f"{key}: collected, not cleaned yet")
    for problem in report["problems"]:
        click.echo(problem, err=True)
    click.echo("the books balance" if report["balanced"] else "the books do NOT balance")
