"""`lakehouse check`: every problem of `catalog/` at once, or what was read."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from lakehouse.cli.output import json_option, print_json
from lakehouse.errors import CatalogError, Problem
from lakehouse.parse.judge import judge_template
from lakehouse.settings import load_settings
from lakehouse.specs.loader import Catalog, load_catalog


@click.command("check", help="Validate all of catalog/: sources, templates, schemas, checks and URL rules.")
@click.option("--catalog", "folder", type=click.Path(path_type=Path), help="folder to read instead of the set one")
@json_option
def command(folder: Path | None, as_json: bool) -> None:
    """Exits 0 when everything is right, 2 with all problems."""
    root = folder if folder is not None else load_settings().catalog_dir
    begun = time.perf_counter()
    report: dict[str, Any]
    try:
        report = {
            "ok": True,
            "catalog": str(root),
            "counts": _counts(load_catalog(root, judge_template)),
            "problems": [],
        }
    except CatalogError as error:
        report = {"ok": False, "catalog": str(root), "counts": None, "problems": [_row(p) for p in error.problems]}
        text = str(error)
    else:
        text = f"{root} is right: " + ", ".join(_counted(noun, number) for noun, number in report["counts"].items())
    report["seconds"] = round(time.perf_counter() - begun, 3)
    if as_json:
        print_json(report)
    else:
        click.echo(text, err=not report["ok"])
    if not report["ok"]:
        sys.exit(CatalogError.exit_code)


def _counts(catalog: Catalog) -> dict[str, int]:
    return {
        "sources": len(catalog.sources),
        "tasks": sum(len(source.tasks) for source in catalog.sources.values()),
        "templates": len(catalog.templates),
        "datasets": len(catalog.schemas),
        "schema versions": sum(len(versions) for versions in catalog.schemas.values()),
        "lists of checks": len(catalog.checks),
    }


def _counted(noun: str, number: int) -> str:
    """`1 source`, `2 lists of checks`."""
    first, _, rest = noun.partition(" of ")
    first = first.removesuffix("s") if number == 1 else first
    return f"{number} {first} of {rest}" if rest else f"{number} {first}"


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "path": problem.path,
        "wrong": problem.wrong,
        "right": problem.right,
    }
