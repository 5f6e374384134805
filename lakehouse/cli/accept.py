"""`lakehouse accept`: the growing list of proofs on the live system."""

from __future__ import annotations

import sys
from typing import Any

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.materialize import shown_progress
from lakehouse.cli.output import json_option, print_json, print_table
from lakehouse.cli.verify import open_engines


@click.command("accept", help="Prove on the live system what this project promises, with measured values.")
@json_option
def command(as_json: bool) -> None:
    """Exits 0 when no proof failed, 1 when one did; what is not built yet or has no data is never called proven."""
    from lakehouse.materialize.proofs import run_proofs

    with opened_lake() as lake, shown_progress(quiet=as_json) as say:
        proofs = run_proofs(lake, open_engines(lake), say)
    counts: dict[str, int] = {}
    for proof in proofs:
        counts[proof["status"]] = counts.get(proof["status"], 0) + 1
    report = {"ok": counts.get("failed", 0) == 0, "counts": counts, "proofs": proofs}
    if as_json:
        print_json(report)
    else:
        print_proofs(report)
    if not report["ok"]:
        sys.exit(1)


def print_proofs(report: dict[str, Any]) -> None:
    """The proofs for people."""
    rows = []
    for proof in report["proofs"]:
        measured = ", ".join(f"{name} {value}" for name, value in proof["measured"].items())
        rows.append((proof["status"], proof["name"], proof["promise"], measured))
    print_table(("status", "proof", "promise", "measured"), rows)
    for proof in report["proofs"]:
        for fault in proof["faults"]:
            click.echo(f"{proof['name']}: {fault}", err=True)
