"""`lakehouse upkeep`: keep tables fast by expiring old table snapshots and removing what only they needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import click

from lakehouse.cli.output import json_option, print_table, show


@click.command("upkeep")
@click.argument("tables", nargs=-1)
@click.option("--apply", "apply", is_flag=True, help="do it; without this only the plan is shown")
@click.option("--keep-untagged", type=click.IntRange(min=1), default=50, show_default=True, help="table snapshots kept")
@click.option("--keep-tags", type=click.IntRange(min=1), default=100, show_default=True, help="tags kept")
@click.option(
    "--orphan-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="files that no table snapshot ever reached are removed after this time",
)
@json_option
def command(
    *, tables: Sequence[str], apply: bool, keep_untagged: int, keep_tags: int, orphan_hours: float, as_json: bool
) -> None:
    """Tag yesterday's state, expire old table snapshots, and remove files that nothing needs.

    TABLES are named layer.table; all tables where none is given. Tags, branches and the old files of recorded fixes
    are never touched; day tags end after 60 days.
    """
    from lakehouse.lake import open_lake
    from lakehouse.logs import configure_logs
    from lakehouse.query.locations import read_locations
    from lakehouse.settings import load_settings
    from lakehouse.tables.upkeep import Limits, upkeep

    limits = Limits(keep_untagged, keep_tags, timedelta(hours=orphan_hours))
    settings = load_settings()
    configure_logs(settings.clock, settings.log_format, settings.log_level)
    with open_lake(settings) as lake:
        names = tables or tuple(read_locations(lake.iceberg))
        reports = upkeep(lake.committer, names, limits, apply=apply, clock=lake.clock)
    show({"applied": apply, "tables": [asdict(report) for report in reports]}, as_json, _print_reports)


def _print_reports(value: Mapping[str, Any]) -> None:
    rows = []
    for report in value["tables"]:
        expiry, removal = report["expiry"], report["removal"]
        kinds = ", ".join(f"{count} {kind}" for kind, count in removal["kinds"].items())
        rows.append(
            (
                report["table"],
                report["tagged"],
                f"{len(expiry['snapshots'])} of {len(expiry['snapshots']) + expiry['snapshots_left']}",
                len(expiry["tags"]),
                kinds or "none",
                f"{removal['bytes'] / 1e6:.1f}",
                report["seconds"],
            )
        )
    print_table(("table", "day tag", "snapshots dropped", "tags dropped", "files removed", "MB", "seconds"), rows)
    if not value["applied"]:
        click.echo("this is the plan; `lakehouse upkeep --apply` does it")
