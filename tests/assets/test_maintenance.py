"""Dagster's own history is bounded, and no partition loses its newest event by that."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from assets.events import asset_key_of
from assets.maintenance import prune_history
from assets.partitions import key_of
from lakehouse.model.partition import SourceDay
from tests.assets.conftest import Deployment


def test_prune_keeps_the_run_behind_each_newest_event(deployment: Deployment) -> None:
    day = SourceDay("demo_daily", deployment.settings.clock.today())
    job = deployment.defs.resolve_job_def("raw_clean_feature")
    runs = [job.execute_in_process(instance=deployment.instance, partition_key=key_of(day)).run_id for _ in range(3)]
    later = deployment.settings.clock.now() + timedelta(seconds=1)
    assert prune_history(deployment.instance, later) == 2
    assert [run.run_id for run in deployment.instance.get_runs()] == [runs[-1]]
    newest = deployment.instance.get_latest_materialization_event(asset_key_of("clean.articles"))
    assert newest is not None
    assert newest.run_id == runs[-1]


def test_prune_leaves_young_runs(deployment: Deployment) -> None:
    day = SourceDay("demo_daily", deployment.settings.clock.today())
    job = deployment.defs.resolve_job_def("raw_clean_feature")
    for _ in range(2):
        job.execute_in_process(instance=deployment.instance, partition_key=key_of(day))
    assert prune_history(deployment.instance, deployment.settings.clock.now() - timedelta(days=1)) == 0
    assert len(deployment.instance.get_runs()) == 2


def test_maintenance_job_runs_on_a_lake_with_tables(deployment: Deployment) -> None:
    day = SourceDay("demo_daily", deployment.settings.clock.today())
    assert (
        deployment.defs.resolve_job_def("raw_clean_feature")
        .execute_in_process(instance=deployment.instance, partition_key=key_of(day))
        .success
    )
    assert deployment.defs.resolve_job_def("maintenance").execute_in_process(instance=deployment.instance).success
    assert isinstance(deployment.defs.resolve_schedule_def("nightly_maintenance"), dg.ScheduleDefinition)
