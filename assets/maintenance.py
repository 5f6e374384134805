"""Night work: upkeep of the tables, and a bound on Dagster's own history."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import dagster as dg

from lakehouse.query.locations import read_locations
from lakehouse.settings import Settings
from lakehouse.tables.upkeep import upkeep

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


@dg.op(required_resource_keys={"lake"}, description="expires table snapshots and collects what only they reached")
def keep_tables(context: dg.OpExecutionContext) -> None:
    """Run the upkeep of every table and log what it did."""
    lake = context.resources.lake
    for report in upkeep(lake.committer, sorted(read_locations(lake.iceberg)), clock=lake.clock):
        context.log.info(str(report))


@dg.op(required_resource_keys={"lake"}, description="drops old runs from Dagster's storage")
def keep_history(context: dg.OpExecutionContext) -> None:
    """Bound Dagster's own storage to the last days."""
    before = context.resources.lake.clock.now() - timedelta(days=HISTORY_DAYS)
    context.log.info("deleted %d runs from before %s", prune_history(context.instance, before), before.date())


@dg.job(description="nightly upkeep of tables and of Dagster's history")
def maintenance() -> None:
    """Both ops, independent of each other."""
    keep_tables()
    keep_history()


def define_nightly(settings: Settings) -> dg.ScheduleDefinition:
    """Run maintenance at 03:30 of the business zone."""
    return dg.ScheduleDefinition(
        job=maintenance, cron_schedule="30 3 * * *", execution_timezone=settings.business_tz, name="nightly_maintenance"
    )
