"""`lakehouse materialize`: make raw, clean and feature partitions without Dagster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console

from lakehouse.cli.days import day_options, opened_lake, source_days
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.lake import Lake
from lakehouse.materialize.result import PartitionResult, ProgressSink
from lakehouse.model.partition import SourceDay

LAYERS = ("raw", "clean", "feature")


@click.command("materialize", help="Make raw, clean and feature partitions of sources and days, without Dagster.")
@click.option("--source", "sources", multiple=True, required=True, help="a source; may be given several times")
@day_options
@click.option("--layer", type=click.Choice([*LAYERS, "all"]), default="all", show_default=True)
@json_option
def command(
    *, sources: tuple[str, ...], dt: str | None, first: str | None, last: str | None, layer: str, as_json: bool
) -> None:
    """Exits 0 when every partition was made, 1 when one was not, 2 for names and days that cannot be."""
    layers = LAYERS if layer == "all" else (layer,)
    with opened_lake() as lake:
        days = source_days(lake, sources, dt, first, last)
        report = materialize_layers(lake, days, layers, quiet=as_json)
    print_report(report, as_json)


def materialize_layers(lake: Lake, days: Sequence[SourceDay], layers: Sequence[str], *, quiet: bool) -> dict[str, Any]:
    """Run the layers one after the other over all days; gives a report ready for JSON."""
    began = time.perf_counter()
    results: list[PartitionResult] = []
    with shown_progress(quiet=quiet) as say:
        for layer in layers:
            results += _materializer(layer)(lake, days, say)
    return {
        "run_id": lake.run_id,
        "ok": all(result.ok for result in results),
        "elapsed_s": round(time.perf_counter() - began, 3),
        "results": [result_as_dict(result) for result in results],
    }


def _materializer(layer: str) -> Callable[[Lake, Sequence[SourceDay], ProgressSink], list[PartitionResult]]:
    from lakehouse.materialize.clean import materialize_clean
    from lakehouse.materialize.feature import materialize_feature
    from lakehouse.materialize.raw import materialize_raw

    return {"raw": materialize_raw, "clean": materialize_clean, "feature": materialize_feature}[layer]


def result_as_dict(result: PartitionResult) -> dict[str, Any]:
    """A result ready for JSON, without its preview."""
    return {
        "table": result.table,
        "source": result.partition.source,
        "dt": result.partition.dt.isoformat(),
        "schema_version": result.partition.schema_version,
        "state": result.state.value,
        "changed": result.changed,
        "snapshot_id": result.snapshot_id,
        "row_count": result.row_count,
        "rows": dict(result.rows),
        "uri": result.uri,
        "message": result.message,
        "error": result.error,
        "elapsed_s": result.elapsed,
    }


def print_report(report: dict[str, Any], as_json: bool) -> None:
    """Print a report and exit 1 if anything in it failed."""
    if as_json:
        print_json(report)
    else:
        columns = ("table", "source", "dt", "state", "row_count", "changed", "rows")
        print_table(columns, ([_cell(row[name]) for name in columns] for row in report["results"]))
        for line in sorted({row["error"] or row["message"] for row in report["results"]} - {""}):
            click.echo(line, err=True)
        click.echo(f"{len(report['results'])} partitions in {report['elapsed_s']} s, run {report['run_id']}", err=True)
    if not report["ok"]:
        sys.exit(1)


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[ProgressSink]:
    """What runs right now: one moving line in a terminal, one line a step elsewhere, nothing when quiet."""
    console = Console(stderr=True)
    if quiet:
        yield _say_nothing
    elif console.is_terminal:
        with console.status("starting") as status:
            yield status.update
    else:
        yield lambda text: click.echo(text, err=True)


def _say_nothing(_: str) -> None:
    pass
