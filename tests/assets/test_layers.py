"""Partitions materialized one by one, as a range in one run, and as a list; each event tells its own partition."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import dagster as dg
import pytest

from assets.events import asset_key_of
from assets.partitions import key_of
from lakehouse.errors import UnknownNameError
from lakehouse.lake import open_lake
from lakehouse.materialize.collecting import collect
from lakehouse.materialize.result import ignore_progress
from lakehouse.model.partition import Partition, SourceDay
from tests.assets.conftest import Deployment

TABLES = ("raw.fetches", "raw.entries", "clean.articles", "clean.outcomes", "feature.articles", "feature.source_daily")
RANGE = {"start": "dagster/asset_partition_range_start", "end": "dagster/asset_partition_range_end"}


def past_days(deployment: Deployment, count: int) -> list[SourceDay]:
    """The last `count` days before today of the column that is addressed by date."""
    today = deployment.settings.clock.today()
    return [SourceDay("demo_daily", today - timedelta(days=n)) for n in range(count, 0, -1)]


def events_of(deployment: Deployment, table: str) -> Iterator[tuple[str, dg.AssetMaterialization]]:
    """(partition key, event) of every materialization of a table."""
    for record in deployment.instance.fetch_materializations(asset_key_of(table), limit=100).records:
        event = record.asset_materialization
        assert event is not None
        yield str(event.partition), event


def counted(event: dg.AssetMaterialization) -> int:
    """The row count that an event tells."""
    value = event.metadata["dagster/partition_row_count"].value
    assert isinstance(value, int)
    return value


def told(event: dg.AssetMaterialization, name: str) -> str:
    """A text of an event's metadata."""
    value = event.metadata[name].value
    assert isinstance(value, str)
    return value


def rows_of(deployment: Deployment, table: str, day: SourceDay) -> int:
    """Rows of the partition by PyIceberg."""
    with open_lake(deployment.settings) as lake:
        return int(lake.committer.scan(table, [Partition(day.source, day.dt, 1)], ["source"]).num_rows)


def run_range(deployment: Deployment, first: SourceDay, last: SourceDay) -> dg.ExecuteInProcessResult:
    """All three layers over a range of one source in one run, as a backfill launches them."""
    job = deployment.defs.resolve_job_def("raw_clean_feature")
    tags = {RANGE["start"]: key_of(first), RANGE["end"]: key_of(last)}
    return job.execute_in_process(instance=deployment.instance, tags=tags, raise_on_error=False)


def test_one_partition_through_all_layers(deployment: Deployment) -> None:
    day = SourceDay("demo_gazette", deployment.settings.clock.today())
    job = deployment.defs.resolve_job_def("raw_clean_feature")
    result = job.execute_in_process(instance=deployment.instance, partition_key=key_of(day))
    assert result.success
    for table in TABLES:
        [(key, event)] = events_of(deployment, table)
        assert key == key_of(day)
        assert counted(event) == rows_of(deployment, table, day) > 0
        assert told(event, "dagster/table_name") == table
        assert told(event, "table_snapshot_id").isdecimal()
        preview = event.metadata["preview"]
        assert isinstance(preview, dg.TableMetadataValue)
        assert preview.records
        assert not {"source", "dt"} & set(preview.records[0].data)
        assert all(isinstance(value, str) and len(value) <= 60 for value in preview.records[0].data.values())
    [check] = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == ("books_balance", True)


def test_snapshot_id_is_the_one_of_this_run(deployment: Deployment) -> None:
    first, second = past_days(deployment, 2)
    for day in (first, second):
        assert run_range(deployment, day, day).success
    [(newer, newest_event), (older, oldest_event)] = events_of(deployment, "raw.fetches")
    assert (newer, older) == (key_of(second), key_of(first))
    with open_lake(deployment.settings) as lake:
        snapshots = [snapshot.snapshot_id for snapshot in lake.committer.table("raw.fetches").snapshots()]
    reported = [int(told(event, "table_snapshot_id")) for event in (oldest_event, newest_event)]
    assert reported == snapshots


def test_range_in_one_run_gives_each_partition_its_own_event(deployment: Deployment) -> None:
    days = past_days(deployment, 3)
    assert run_range(deployment, days[0], days[-1]).success
    for table in TABLES:
        counts = {key: counted(event) for key, event in events_of(deployment, table)}
        assert counts == {key_of(day): rows_of(deployment, table, day) for day in days}
        assert all(counts.values())


def damage_uploaded_batch(deployment: Deployment, day: SourceDay) -> None:
    """Collect a day without committing it, then cut its stored batch short."""
    with open_lake(deployment.settings) as lake:
        collect(lake, day, ignore_progress)
    [batch] = (deployment.settings.home / "objects" / "data" / "batch").rglob("*.json.zst")
    batch.chmod(0o600)
    batch.write_bytes(batch.read_bytes()[:40])


def test_failed_partition_gets_no_event_and_stops_no_other(deployment: Deployment) -> None:
    bad, good = past_days(deployment, 2)
    damage_uploaded_batch(deployment, bad)
    job = deployment.defs.resolve_job_def("materialize_list")
    config = {"ops": {"each_layer": {"config": {"keys": [key_of(bad), key_of(good)]}}}}
    result = job.execute_in_process(run_config=config, instance=deployment.instance, raise_on_error=False)
    assert not result.success
    for table in TABLES:
        assert [key for key, _ in events_of(deployment, table)] == [key_of(good)]


def test_range_with_a_failed_partition_tells_of_the_good_ones(deployment: Deployment) -> None:
    bad, good = past_days(deployment, 2)
    damage_uploaded_batch(deployment, bad)
    assert not run_range(deployment, bad, good).success
    [(key, event)] = events_of(deployment, "raw.fetches")
    assert key == key_of(good)
    assert counted(event) == rows_of(deployment, "raw.fetches", good) > 0


def test_unknown_source_stops_before_any_work(deployment: Deployment) -> None:
    [good] = past_days(deployment, 1)
    gone = SourceDay("demo_gone", good.dt)
    job = deployment.defs.resolve_job_def("materialize_list")
    config = {"ops": {"each_layer": {"config": {"keys": [key_of(good), key_of(gone)]}}}}
    with pytest.raises(UnknownNameError, match="demo_gone"):
        job.execute_in_process(run_config=config, instance=deployment.instance)
    assert list(events_of(deployment, "raw.fetches")) == []


def test_list_of_days_that_are_not_neighbours_in_one_run(deployment: Deployment) -> None:
    first, _, third = past_days(deployment, 3)
    long_ago = SourceDay("demo_daily", date(2020, 2, 29))
    keys = [key_of(day) for day in (third, first, long_ago)]
    config = {"ops": {"each_layer": {"config": {"keys": keys}}}}
    job = deployment.defs.resolve_job_def("materialize_list")
    assert job.execute_in_process(run_config=config, instance=deployment.instance).success
    for table in TABLES:
        counts = {key: counted(event) for key, event in events_of(deployment, table)}
        assert counts == {key_of(day): rows_of(deployment, table, day) for day in (first, third, long_ago)}
        assert all(counts.values())
