"""Night work: upkeep of the tables, and a bound on Dagster's own history."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.materialize.holdings import refresh_sizes
from lakehouse.materialize.reconcile import reconcile
from lakehouse.materialize.retention import retire
from lakehouse.materialize.views import refresh_views
from lakehouse.query.locations import read_locations
from lakehouse.settings import Settings
from lakehouse.tables.manifests import rewrite_manifests
from lakehouse.tables.small_files import compact_tables
from lakehouse.tables.upkeep import upkeep

GROUP = "upkeep"
HISTORY_DAYS = 30
BATCH = 500
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def runs_behind_latest_events(instance: dg.DagsterInstance, assets: Iterable[dg.AssetKey]) -> set[str]:
    """Ids of runs that made the newest materialization of some partition: deleting one would unmake it in the UI."""
    needed: set[str] = set()
    for key in assets:
        newest = instance.event_log_storage.get_latest_storage_id_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION
        )
        ids = sorted(newest.values())
        for start in range(0, len(ids), BATCH):
            filters = dg.AssetRecordsFilter(asset_key=key, storage_ids=ids[start : start + BATCH])
            needed |= {r.run_id for r in instance.fetch_materializations(filters, limit=BATCH).records}
    return needed


def prune_history(instance: dg.DagsterInstance, before: datetime) -> int:
    """Delete ended runs created before `before`, with their events, unless a partition's newest event is theirs."""
    needed = runs_behind_latest_events(instance, instance.get_asset_keys())
    old = instance.get_run_records(filters=dg.RunsFilter(statuses=ENDED, created_before=before))
    doomed = [record.dagster_run.run_id for record in old if record.dagster_run.run_id not in needed]
    for run_id in doomed:
        instance.delete_run(run_id)
    return len(doomed)


def _asset(name: str, after: str | None = None) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """A step of upkeep; `after` names the step before it."""
    return dg.asset(
        key=[GROUP, name],
        group_name=GROUP,
        deps=[dg.AssetKey([GROUP, after])] if after else [],
        required_resource_keys={"lake"},
    )


@_asset("retention")
def retention(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Days that sources no longer keep leave the tables."""
    found = retire(context.resources.lake)
    return _result(found, partitions=sum(len(one.partitions) for one in found), rows=sum(one.rows for one in found))


@_asset("compaction", after="retention")
def compaction(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Small files of partitions are put together."""
    lake = context.resources.lake
    found = compact_tables(lake.committer, sorted(read_locations(lake.iceberg)))
    for one in found:
        refresh_sizes(lake, one.table, [part.partition for part in one.partitions])
    done = [part for one in found for part in one.partitions]
    files = {name: sum(getattr(part, name) for part in done) for name in ("files_before", "files_after")}
    return _result(found, partitions=len(done), refused=sum(len(one.refused) for one in found), **files)


@_asset("manifests", after="compaction")
def manifests(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Manifests are rewritten in partition order."""
    lake = context.resources.lake
    found = rewrite_manifests(lake.committer, sorted(read_locations(lake.iceberg)))
    return _result(found, tables=sum(one.overlapping > 0 for one in found))


@_asset("expiry", after="manifests")
def expiry(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Old table snapshots are dropped, and the files that nothing needs removed, orphans among them."""
    lake = context.resources.lake
    found = upkeep(lake.committer, sorted(read_locations(lake.iceberg)), clock=lake.clock)
    removed = {"files": sum(one.removal.files for one in found), "bytes": sum(one.removal.bytes for one in found)}
    return _result(found, table_snapshots=sum(len(one.expiry.snapshots) for one in found), **removed)


@_asset("views", after="expiry")
def views(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """The views in Trino are made or mended."""
    changed = refresh_views(context.resources.lake)
    return _result(changed, views=len(changed))


@_asset("books", after="views")
def books(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Catalog, ledger, tables and objects are compared, pages by a sample; what does not fit is listed."""
    found = list(reconcile(context.resources.lake))
    return _result([f"{one.kind}: {one.subject} {one.detail}" for one in found], findings=len(found))


@_asset("history")
def history(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Old runs leave Dagster's own storage."""
    before = context.resources.lake.clock.now() - timedelta(days=HISTORY_DAYS)
    return dg.MaterializeResult(metadata={"runs": prune_history(context.instance, before), "before": str(before)})


def _result(reports: Sequence[Any], **totals: int) -> dg.MaterializeResult[None]:
    """Totals, and the report of each table where something was done."""
    lines = [f"- {one}" for one in reports]
    return dg.MaterializeResult(
        metadata={**totals, "reports": dg.MetadataValue.md("\n".join(lines) or "nothing to do")}
    )


STEPS = [retention, compaction, manifests, expiry, views, books, history]
maintenance = dg.define_asset_job(
    "maintenance",
    selection=dg.AssetSelection.groups(GROUP),
    description="nightly upkeep of tables and of Dagster's history",
)


def define_nightly(settings: Settings) -> dg.ScheduleDefinition:
    """Run maintenance at 03:30 of the business zone."""
    return dg.ScheduleDefinition(
        job=maintenance, cron_schedule="30 3 * * *", execution_timezone=settings.business_tz, name="nightly_maintenance"
    )
