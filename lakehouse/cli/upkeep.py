"""`lakehouse upkeep`: keep tables fast and small. A plan is shown; `--apply` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.output import json_option, show

if TYPE_CHECKING:
    from lakehouse.lake import Lake

apply_option = click.option("--apply", "apply", is_flag=True, help="do it; without this only the plan is shown")
tables_argument = click.argument("tables", nargs=-1)
Report = dict[str, Any]


class Steps(click.Group):
    """A group whose command `all` runs where none is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args[:1] and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["all", *args])


@click.group("upkeep", cls=Steps)
def command() -> None:
    """Keep tables fast and small: without a step all of them, in the order in which they are listed.

    Each step shows its plan; `--apply` does it. A run that ends in the middle is finished by the next one. TABLES are
    named layer.table; all tables where none is given.
    """


@command.command("retain")
@click.option("--grace-days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="files stay so long")
@apply_option
@json_option
def retain(*, grace_days: float, apply: bool, as_json: bool) -> None:
    """Drop the days that the sources' `retention` no longer keeps."""
    with _opened() as lake:
        report = _retain(lake, apply, timedelta(days=grace_days))
    _show({"applied": apply, **report}, as_json)


@command.command("compact")
@tables_argument
@click.option(
    "--min-files", type=click.IntRange(min=2), default=8, show_default=True, help="small files of a partition"
)
@click.option(
    "--cluster-files", type=click.IntRange(min=2), default=500, show_default=True, help="by hour from here on"
)
@click.option("--cluster-gb", type=click.FloatRange(min=0), default=5.0, show_default=True, help="or from this size on")
@click.option(
    "--observe-days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="old files stay so long"
)
@apply_option
@json_option
def compact(
    *,
    tables: Sequence[str],
    min_files: int,
    cluster_files: int,
    cluster_gb: float,
    observe_days: float,
    apply: bool,
    as_json: bool,
) -> None:
    """Put small files together; large days get files by hour. The rows stay the same, which is proven."""
    from lakehouse.tables.layout import LayoutRules

    rules = LayoutRules(min_files, cluster_files=cluster_files, cluster_bytes=int(cluster_gb * 1e9))
    with _opened() as lake:
        report = _compact(lake, tables, apply, rules, timedelta(days=observe_days))
    _show({"applied": apply, **report}, as_json)


@command.command("manifests")
@tables_argument
@apply_option
@json_option
def manifests(*, tables: Sequence[str], apply: bool, as_json: bool) -> None:
    """Rewrite manifests in partition order, so that a query reads few of them."""
    with _opened() as lake:
        report = _manifests(lake, tables, apply)
    _show({"applied": apply, **report}, as_json)


@command.command("expire")
@tables_argument
@click.option("--keep-untagged", type=click.IntRange(min=1), default=50, show_default=True, help="table snapshots kept")
@click.option("--keep-tags", type=click.IntRange(min=1), default=100, show_default=True, help="tags kept")
@apply_option
@json_option
def expire(*, tables: Sequence[str], keep_untagged: int, keep_tags: int, apply: bool, as_json: bool) -> None:
    """Tag yesterday's state, expire old table snapshots, and remove what only they needed."""
    with _opened() as lake:
        report = _expire(lake, tables, apply, keep_untagged, keep_tags, None)
    _show({"applied": apply, **report}, as_json)


@command.command("orphans")
@tables_argument
@click.option("--hours", type=click.FloatRange(min=1), default=24.0, show_default=True, help="younger files stay")
@apply_option
@json_option
def orphans(*, tables: Sequence[str], hours: float, apply: bool, as_json: bool) -> None:
    """Remove files that no table snapshot ever reached: what failed commits left."""
    from lakehouse.tables.upkeep import collect_garbage

    with _opened() as lake:
        names = tables or _all_tables(lake)
        found = [collect_garbage(lake.committer, one, orphan_age=timedelta(hours=hours), apply=apply) for one in names]
    _show({"applied": apply, "orphans": [asdict(one) for one in found]}, as_json)


@command.command("all")
@tables_argument
@click.option("--keep-untagged", type=click.IntRange(min=1), default=50, show_default=True, help="table snapshots kept")
@click.option("--keep-tags", type=click.IntRange(min=1), default=100, show_default=True, help="tags kept")
@click.option(
    "--orphan-hours",
    type=click.FloatRange(min=1),
    default=24.0,
    show_default=True,
    help="files that no table snapshot ever reached are removed after this time",
)
@apply_option
@json_option
def run_all(
    *, tables: Sequence[str], keep_untagged: int, keep_tags: int, orphan_hours: float, apply: bool, as_json: bool
) -> None:
    """Retention, compaction, manifests, expiry and orphans.

    Tags, branches without an age and the old files of recorded fixes are never touched; day tags end after 60 days.
    Retention is left out where TABLES are named.
    """
    with _opened() as lake:
        report: Report = {} if tables else _retain(lake, apply)
        report |= _compact(lake, tables, apply)
        report |= _manifests(lake, tables, apply)
        report |= _expire(lake, tables, apply, keep_untagged, keep_tags, timedelta(hours=orphan_hours))
    _show({"applied": apply, **report}, as_json)


def _opened() -> Lake:
    from lakehouse.lake import open_lake
    from lakehouse.logs import configure_logs
    from lakehouse.settings import load_settings

    settings = load_settings()
    configure_logs(settings.clock, settings.log_format, settings.log_level)
    return open_lake(settings)


def _all_tables(lake: Lake) -> tuple[str, ...]:
    from lakehouse.query.locations import read_locations

    return tuple(read_locations(lake.iceberg))


def _retain(lake: Lake, apply: bool, grace: timedelta | None = None) -> Report:
    from lakehouse.materialize.retention import GRACE, retire

    found = retire(lake, grace=GRACE if grace is None else grace, apply=apply)
    return {"retention": [asdict(one) for one in found]}


def _compact(
    lake: Lake, tables: Sequence[str], apply: bool, rules: Any = None, observe: timedelta | None = None
) -> Report:
    from lakehouse.materialize.holdings import refresh_sizes
    from lakehouse.tables.small_files import OBSERVATION, compact_tables

    names = tables or _all_tables(lake)
    observe = OBSERVATION if observe is None else observe
    found = compact_tables(lake.committer, names, rules, observe=observe, apply=apply)
    for one in found if apply else ():
        refresh_sizes(lake, one.table, [part.partition for part in one.partitions])
    return {"compaction": [asdict(one) for one in found]}


def _manifests(lake: Lake, tables: Sequence[str], apply: bool) -> Report:
    from lakehouse.tables.manifests import rewrite_manifests

    found = rewrite_manifests(lake.committer, tables or _all_tables(lake), apply=apply)
    return {"manifests": [asdict(one) for one in found]}


def _expire(  # noqa: PLR0917
    lake: Lake, tables: Sequence[str], apply: bool, untagged: int, tags: int, orphan_age: timedelta | None
) -> Report:
    from lakehouse.tables.upkeep import Limits, upkeep

    limits = Limits(untagged, tags, orphan_age)
    reports = upkeep(lake.committer, tables or _all_tables(lake), limits, apply=apply, clock=lake.clock)
    return {"tables": [asdict(one) for one in reports]}


def _show(report: Report, as_json: bool) -> None:
    from lakehouse.cli.upkeep_tables import print_reports

    show(report, as_json, print_reports)
