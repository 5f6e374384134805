"""`lakehouse trace`: lead a row back to its page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json, print_table

SHOWN = 120


@click.command("trace", help="Lead a fetch id, a URL or a content hash back to task, worker, template and page.")
@click.argument("wanted")
@json_option
def command(wanted: str, as_json: bool) -> None:
    """Exits 0 when everything leads home, 1 when something does not, 2 for what names nothing."""
    from lakehouse.materialize.lineage import find_fetches, lead_home

    with opened_lake() as lake:
        homes = lead_home(lake, find_fetches(lake, wanted))
    if as_json:
        print_json({"wanted": wanted, "fetches": homes})
    else:
        for home in homes:
            print_home(home)
    if any(home["problems"] for home in homes):
        sys.exit(1)


def print_home(home: Mapping[str, Any]) -> None:
    """One fetch for people."""
    fetch, task, snapshot = home["fetch"], home["task"] or {}, home["snapshot"] or {}
    outcome = home["outcome"] or {}
    verdict = "body verified" if snapshot.get("verified") else snapshot.get("error") or "no body kept"
    rows = [
        ("url", fetch["url"]),
        ("source and day", f"{fetch['source']} {fetch['dt']}"),
        ("outcome", " ".join(str(part) for part in (outcome.get("outcome"), outcome.get("reason")) if part)),
        ("fetch", f"{fetch['fetch_id']} at {fetch['collect_time']}, status {fetch['status']}, try {fetch['attempt']}"),
        ("task", f"{fetch['task_id']} {task.get('name', '')} {task.get('state', 'not in raw.tasks')}"),
        ("worker", home["worker"]),
        ("template", home["template"]),
        ("snapshot", f"{snapshot.get('key', '')} ({verdict})"),
        ("sha256", snapshot.get("sha256")),
    ]
    rows += [("rejected", f"{row['stage']}: {row['reason']}, {row['detail']}") for row in home["rejects"]]
    rows += [("problem", problem) for problem in home["problems"]]
    print_table(("what", "value"), rows, title=f"fetch {fetch['fetch_id']}")
    fields = (home["evidence"] or {}).get("fields", {})
    if fields:
        shown = [
            (name, _short(found["value"]), found.get("rule"), found.get("node"), _short(found.get("raw")))
            for name, found in fields.items()
        ]
        print_table(("field", "value", "rule", "node", "raw text"), shown, title="evidence, parsed again")


def _short(value: Any) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
