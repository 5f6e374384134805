"""Days that a source no longer keeps leave their tables, and are not made anew from nothing."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest
import yaml

from lakehouse.errors import CatalogError, ConfigError
from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.retention import retire
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.settings import load_settings
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.upkeep import Limits, upkeep

ROOT = Path(__file__).parents[3]
TABLE = "raw.fetches"
SOURCE = "demo_daily"


def declare(catalog: Path, **retention: str) -> None:
    file = catalog / "sources" / f"{SOURCE}.yaml"
    declared = yaml.safe_load(file.read_text("utf-8"))
    file.write_text(yaml.safe_dump({**declared, "retention": retention}), "utf-8")


def lake_that_keeps(tmp_path: Path, **retention: str) -> Lake:
    catalog = tmp_path / "catalog"
    if not catalog.exists():
        shutil.copytree(ROOT / "catalog", catalog)
    declare(catalog, **retention)
    return open_lake(load_settings(home=tmp_path / "home", catalog_dir=catalog))


def fill(lake: Lake, day: dt.date, source: str = SOURCE) -> Partition:
    values = {
        "source": source,
        "dt": day,
        "schema_version": 1,
        "batch_id": "0" * 32,
        "task_id": "t",
        "list_url_fp": "0" * 32,
        "page_no": 1,
        "position": 1,
        "url": "https://example.com/",
        "url_fp": "0" * 32,
        "entry": {},
        "collect_time": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    }
    lake.committer.append("raw.entries", to_arrow([values], lake.catalog.table_schema("raw.entries")))
    partition = Partition(source, day, 1)
    info = PartitionInfo(Layer.RAW, "raw.entries", "entries", partition, "", 1, 1, 1, PartitionState.COMPLETE)
    PartitionIndex(lake.ledger).record(info)
    return partition


def test_old_days_go_and_their_files_after_the_grace(tmp_path: Path) -> None:
    with lake_that_keeps(tmp_path, raw="30d") as lake:
        today = lake.clock.today()
        old, kept = fill(lake, today - dt.timedelta(days=31)), fill(lake, today - dt.timedelta(days=30))
        other = fill(lake, today - dt.timedelta(days=400), source="demo_news")
        files = [file.path.removeprefix("file://") for file in lake.committer.files("raw.entries", old)]
        (plan,) = retire(lake, apply=False)
        assert (plan.table, plan.source, plan.partitions, plan.rows) == ("raw.entries", SOURCE, (old,), 1)
        assert lake.committer.scan("raw.entries").num_rows == 3
        assert retire(lake) == [plan]
        assert retire(lake) == []
        assert lake.committer.files("raw.entries", old) == ()
        assert len(lake.committer.files("raw.entries", kept)) == len(lake.committer.files("raw.entries", other)) == 1
        index = PartitionIndex(lake.ledger)
        states = {info.partition: (info.state, info.row_count) for info in index.list()}
        assert states[old] == (PartitionState.RETIRED, 0)
        assert states[kept] == states[other] == (PartitionState.COMPLETE, 1)
        assert [one.decision.payload["days"] for one in lake.decisions.all("retention")] == [[str(old.dt)]]
        for days, there in ((6, True), (8, False)):
            later = lake.clock.now_utc() + dt.timedelta(days=days)
            upkeep(lake.committer, ["raw.entries"], Limits(keep_untagged=1, orphan_age=None), now=later)
            assert [Path(path).exists() for path in files] == [there]


def test_a_retired_day_is_not_made_anew(tmp_path: Path) -> None:
    with lake_that_keeps(tmp_path, raw="30d") as lake:
        old = fill(lake, lake.clock.today() - dt.timedelta(days=40))
        retire(lake)
        for materialize in (materialize_raw, materialize_clean):
            with pytest.raises(ConfigError, match="retention of demo_daily keeps raw from"):
                materialize(lake, [old.day])
    with lake_that_keeps(tmp_path, raw="90d") as lake:
        with pytest.raises(ConfigError, match=r"retention has removed its rows from raw\.entries"):
            materialize_clean(lake, [old.day])
        assert materialize_clean(lake, [SourceDay(SOURCE, lake.clock.today() - dt.timedelta(days=50))])


def test_a_retention_that_is_no_time_is_an_error(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(ROOT / "catalog", catalog)
    declare(catalog, raw="soon")
    with pytest.raises(CatalogError, match=r"demo_daily\.yaml.*retention\.raw"):
        load_catalog(catalog)
