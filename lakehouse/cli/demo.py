"""`lakehouse demo`: the main job on the demo site, and what came of it, for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.clock import Clock
from lakehouse.lake import Lake

WHY = """
    SELECT o.source, o.outcome, coalesce(o.reason, '') AS reason, count(*) AS pages, min(f.url) AS for_example
    FROM clean.outcomes o JOIN raw.fetches f USING (source, fetch_id)
    WHERE o.source LIKE 'demo_%' AND o.outcome NOT IN ('clean', 'listing')
    GROUP BY ALL ORDER BY o.source, o.outcome, reason
"""
SOME_ROWS = """
    SELECT source, publish_time, time_confidence AS sure, title, author, body_chars AS chars FROM clean.articles_latest
    WHERE source LIKE 'demo_%' QUALIFY row_number() OVER (PARTITION BY source ORDER BY publish_time DESC, url) = 1
    ORDER BY source
"""
EDITED = """
    SELECT collect_time, title, body_chars AS chars, url FROM clean.articles
    WHERE source = 'demo_news'
    QUALIFY count(DISTINCT content_hash) OVER (PARTITION BY dt, canonical_fp) > 1
    ORDER BY collect_time DESC LIMIT 2
"""
ONE_ROW = "SELECT fetch_id FROM clean.articles WHERE source = 'demo_daily' ORDER BY dt DESC, url LIMIT 1"
QUERIES = {"why": WHY, "some_rows": SOME_ROWS, "edited": EDITED}


@click.command("demo", help="Run the main job on the demo site through Dagster, and show what came of it.")
@json_option
def command(as_json: bool) -> None:
    """Exits 0 when every partition was made and the books balance, 1 when not."""
    from lakehouse.lake import open_lake
    from lakehouse.settings import Profile, load_settings

    settings = load_settings(profile=Profile.LOCAL)
    click.echo("starting the demo site and one Dagster run on it; this takes about a minute", err=True)
    run = run_demo(quiet=as_json)
    for failure in run["failures"]:
        click.echo(f"lakehouse: {failure}", err=True)
    with open_lake(settings) as lake:
        report = describe_lake(lake, run)
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if not (run["success"] and report["stock"]["balanced"]):
        sys.exit(1)


def run_demo(*, quiet: bool) -> dict[str, Any]:
    """Run `assets.demo` as a process of its own (this library knows nothing of Dagster); gives its report."""
    with tempfile.TemporaryDirectory(prefix="lakehouse-demo-") as folder:
        file = Path(folder) / "run.json"
        arguments = [sys.executable, "-m", "assets.demo", "--report", str(file)]
        environment = {"LAKEHOUSE_LOG_LEVEL": "WARNING", **os.environ}
        done = subprocess.run(
            arguments, check=False, env=environment, stderr=subprocess.PIPE if quiet else None, text=True
        )
        if not file.is_file():
            if done.stderr:
                click.echo(done.stderr, err=True, nl=False)
            sys.exit(done.returncode if done.returncode > 0 else 1)
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return report


def describe_lake(lake: Lake, run: Mapping[str, Any]) -> dict[str, Any]:
    """What the run committed, and what the lake now says of the demo sources; ready for JSON."""
    from lakehouse.cli.stat import take_stock
    from lakehouse.materialize.lineage import find_fetches, lead_home
    from lakehouse.query import connect

    with connect(lake) as db:
        found: dict[str, Any] = {}
        for name, query in QUERIES.items():
            result = db.execute(query)
            columns = [column[0] for column in result.description or ()]
            rows = [[_local(value, lake.clock) for value in row] for row in result.fetchall()]
            found[name] = [dict(zip(columns, row, strict=True)) for row in rows]
        one = db.execute(ONE_ROW).fetchone()
    changed = [made for made in run["partitions"] if made["changed"]]
    return {
        "run": dict(run),
        "partitions": len(run["partitions"]),
        "changed": len(changed),
        "stock": take_stock(lake),
        **found,
        "home": lead_home(lake, find_fetches(lake, one[0]))[0] if one else None,
    }


def print_report(report: Mapping[str, Any]) -> None:
    """The report for people: what was collected, what became of it and why, one row led home, and where to go on."""
    from lakehouse.cli.stat import print_stock
    from lakehouse.cli.trace import print_home

    print_stock({**report["stock"], "rejects": {}})
    _print_rows("what did not become a row, and why", report["why"])
    _print_rows("the newest row of each source", report["some_rows"])
    _print_rows("one article was edited between two fetches; both versions are kept", report["edited"])
    if report["home"]:
        click.echo("\none row led back to its page; `lakehouse trace` does so for any fetch id or URL")
        print_home(report["home"])
    seconds = report["run"]["seconds"]
    if report["changed"]:
        click.echo(f"\ncommitted {report['changed']} partitions in {seconds} s")
    elif report["run"]["success"]:
        click.echo(f"\nnothing new: all {report['partitions']} partitions are as they were ({seconds} s)")
    click.echo(
        "\n  make ui                                      the Dagster UI on http://127.0.0.1:3000\n"
        "  lakehouse sql 'FROM clean.articles LIMIT 5'  ask the tables\n"
        "  python -m infra.demo_site                    walk through the demo site yourself"
    )


def _print_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        click.echo()
        print_table(list(rows[0]), [list(row.values()) for row in rows], title=title)


def _local(value: Any, clock: Clock) -> Any:
    """An instant as business time to the second; everything else as it is."""
    if not isinstance(value, datetime):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return f"{aware.astimezone(clock.zone):%Y-%m-%d %H:%M:%S}"
