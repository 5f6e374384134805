"""What `lakehouse upkeep` shows to people: one table a step, only what is to be done or was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from lakehouse.cli.output import print_table


def print_reports(report: Mapping[str, Any]) -> None:
    """Print each step that the report has."""
    printers = {
        "retention": _print_retention,
        "compaction": _print_compaction,
        "manifests": _print_manifests,
        "tables": _print_expiry,
        "orphans": _print_orphans,
    }
    for step, found in report.items():
        if step in printers:
            printers[step](found)
    if not report["applied"]:
        click.echo("this is the plan; the same command with --apply does it")


def _print_retention(found: list[dict[str, Any]]) -> None:
    rows = [
        (one["table"], one["source"], one["before"], len(one["partitions"]), one["rows"], one["files"], _mb(one))
        for one in found
    ]
    _print("retention", ("table", "source", "days before", "partitions", "rows", "files", "MB"), rows)


def _print_compaction(found: list[dict[str, Any]]) -> None:
    rows = []
    for one in found:
        done, refused = one["partitions"], one["refused"]
        if not done and not refused:
            continue
        before, after = (sum(part[name] for part in done) for name in ("files_before", "files_after"))
        size = sum(part["bytes"] for part in done)
        by_hour = sum(part["clustered"] for part in done)
        rows.append(
            (one["table"], len(done), before, after, by_hour, len(refused), f"{size / 1e6:.1f}", one["seconds"])
        )
    names = ("table", "partitions", "files before", "files after", "by hour", "refused", "MB", "seconds")
    _print("compaction", names, rows)


def _print_manifests(found: list[dict[str, Any]]) -> None:
    names = ("table", "manifests before", "after", "overlapping", "seconds")
    rows = [
        tuple(one[name] for name in ("table", "before", "after", "overlapping", "seconds"))
        for one in found
        if one["overlapping"] or one["before"] != one["after"]
    ]
    _print("manifests", names, rows)


def _print_expiry(found: list[dict[str, Any]]) -> None:
    rows = []
    for one in found:
        expiry, removal = one["expiry"], one["removal"]
        total = len(expiry["snapshots"]) + expiry["snapshots_left"]
        rows.append(
            (
                one["table"],
                one["tagged"],
                f"{len(expiry['snapshots'])} of {total}",
                len(expiry["tags"]),
                _kinds(removal),
                _mb(removal),
                one["seconds"],
            )
        )
    _print("expiry", ("table", "day tag", "snapshots dropped", "tags dropped", "files removed", "MB", "seconds"), rows)


def _print_orphans(found: list[dict[str, Any]]) -> None:
    _print("orphans", ("table", "files", "MB"), [(one["table"], _kinds(one), _mb(one)) for one in found])


def _print(step: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    if rows:
        print_table(names, rows, title=step)
    else:
        click.echo(f"{step}: nothing to do")


def _kinds(removal: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in removal["kinds"].items()) or "none"


def _mb(one: Mapping[str, Any]) -> str:
    return f"{one['bytes'] / 1e6:.1f}"
