"""Upkeep killed at each of its steps: no file that is needed is missing, and the same command finishes the work."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import structlog
import yaml
from click.testing import CliRunner
from pyiceberg.table.snapshots import Operation

from lakehouse.cli import main
from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.model.partition import Layer, Partition, PartitionState
from lakehouse.settings import Settings, load_settings
from lakehouse.tables.content import content_hash
from lakehouse.tables.current import file_name, read_current, write_current
from lakehouse.tables.normalize import to_arrow
from tests.unit.tables.upkeep_lake import metadata_folder, needed_files, stored_files
from tests.upkeep_worker import run_until

ROOT = Path(__file__).parents[2]
TABLES = ("raw.entries", "clean.outcomes")
SOURCE = "demo_daily"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """An empty lake whose source keeps thirty days."""
    catalog = tmp_path / "catalog"
    shutil.copytree(ROOT / "catalog", catalog)
    file = catalog / "sources" / f"{SOURCE}.yaml"
    kept = {"raw": "30d", "clean": "30d"}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text("utf-8")), "retention": kept}), "utf-8")
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(catalog))
    yield load_settings()
    structlog.reset_defaults()


@pytest.fixture
def lake(settings: Settings) -> Iterator[Lake]:
    """The lake with a day of small files, and one that is older than what is kept."""
    with open_lake(settings) as opened:
        opened.decisions.record("note", {})
        today = opened.clock.today()
        for days_ago in (1, 40):
            day = today - dt.timedelta(days=days_ago)
            for number in range(9):
                opened.committer.append(TABLES[0], entries(opened, day, number))
            ids = [{"fetch_id": f"{number}", "outcome": "clean", "rows_out": 1} for number in range(3)]
            place = {"source": SOURCE, "dt": day, "schema_version": 1, "reason": None}
            frame = to_arrow([{**place, **one} for one in ids], opened.catalog.table_schema(TABLES[1]))
            opened.committer.append(TABLES[1], frame, id_column="fetch_id")
            partition = Partition(SOURCE, day, 1)
            for layer, table in zip((Layer.RAW, Layer.CLEAN), TABLES, strict=True):
                info = PartitionInfo(layer, table, "x", partition, "", 1, 1, 1, PartitionState.COMPLETE)
                PartitionIndex(opened.ledger).record(info)
        yield opened


def entries(lake: Lake, day: dt.date, number: int) -> pa.Table:
    """One small batch."""
    values = {
        "source": SOURCE,
        "dt": day,
        "schema_version": 1,
        "batch_id": f"{number:032x}",
        "task_id": "t",
        "list_url_fp": "0" * 32,
        "page_no": 1,
        "position": number,
        "url": f"https://example.com/{number}",
        "url_fp": f"{number:032x}",
        "entry": {},
        "collect_time": dt.datetime(day.year, day.month, day.day, number, tzinfo=dt.UTC),
    }
    return to_arrow([values], lake.catalog.table_schema(TABLES[0]))


def kill(point: str, *arguments: str) -> None:
    """Run a command that dies at a point."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("LAKEHOUSE_")}
    assert run_until(point, ["upkeep", *arguments], environment) == -9, f"{point} was never reached"


def finish(*arguments: str) -> None:
    """Run the same command to its end, twice: the second time finds nothing left undone."""
    for _ in range(2):
        done = CliRunner().invoke(main, ["upkeep", *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output


def check_reachable(lake: Lake) -> None:
    """Every file that any table snapshot needs is there."""
    for name in TABLES:
        table = lake.iceberg.load_table(name)
        assert needed_files(table) <= stored_files(table)


def contents(lake: Lake) -> dict[str, str]:
    """Content hash by table."""
    return {name: content_hash(lake.committer.scan(name)) for name in TABLES}


def test_compaction(lake: Lake) -> None:
    before = contents(lake)
    steps = ("before the new files", "after the new files", "after the list", "before the swap", "after the swap")
    for point in steps:
        kill(point, "compact", "--apply")
        check_reachable(lake)
        assert contents(lake) == before
    finish("compact", "--apply")
    check_reachable(lake)
    assert contents(lake) == before
    table = lake.iceberg.load_table(TABLES[0])
    assert len(table.inspect.files()) == 2
    assert table.metadata_location.endswith(f"/{read_current(table)}")
    for number in range(9):
        assert not lake.committer.append(
            TABLES[0], entries(lake, lake.clock.today() - dt.timedelta(days=1), number)
        ).changed


def test_expiry(lake: Lake) -> None:
    day = Partition(SOURCE, lake.clock.today() - dt.timedelta(days=1), 1)
    frame = lake.committer.scan(TABLES[1], [day])
    arguments = ("expire", TABLES[1], "--keep-untagged", "2", "--apply")
    for point in ("after the list", "before the swap", "after the swap", "before the removal", "after the removal"):
        for number in range(3):  # something to expire again
            lake.committer.replace(TABLES[1], frame.slice(number), [day])
        before = contents(lake)
        kill(point, *arguments)
        check_reachable(lake)
        assert contents(lake) == before
    finish(*arguments)
    table = lake.iceberg.load_table(TABLES[1])
    assert len(table.metadata.snapshots) == 2
    assert stored_files(table) == needed_files(table)
    assert not list(metadata_folder(table).glob("garbage-*"))
    assert contents(lake) == before


def test_retention(lake: Lake) -> None:
    yesterday = Partition(SOURCE, lake.clock.today() - dt.timedelta(days=1), 1)
    kept = {name: content_hash(lake.committer.scan(name, [yesterday])) for name in TABLES}
    arguments = ("retain", "--grace-days", "0", "--apply")
    for point in (
        "after the decision",
        "after the list",
        "before the swap",
        "after the first table",
        "before the index",
    ):
        kill(point, *arguments)
        check_reachable(lake)
        assert {name: content_hash(lake.committer.scan(name, [yesterday])) for name in TABLES} == kept
    finish(*arguments)
    assert contents(lake) == kept
    states = {(one.table, one.partition == yesterday): one.state for one in PartitionIndex(lake.ledger).list()}
    assert states == {
        (name, recent): PartitionState.COMPLETE if recent else PartitionState.RETIRED
        for name in TABLES
        for recent in (True, False)
    }
    finish("expire", "--keep-untagged", "1", "--apply")
    finish("orphans", "--apply")
    check_reachable(lake)
    assert contents(lake) == kept
    assert file_name(lake.iceberg.load_table(TABLES[0]).metadata_location) == read_current(
        lake.iceberg.load_table(TABLES[0])
    )


def test_manifests(lake: Lake) -> None:
    make_small_manifests(lake)
    before = contents(lake)
    for point in ("before the swap", "after the swap"):
        kill(point, "manifests", TABLES[0], "--apply")
        check_reachable(lake)
        assert contents(lake) == before
    finish("manifests", "--apply")
    assert contents(lake) == before
    check_reachable(lake)
    table = lake.iceberg.load_table(TABLES[0])
    assert table.metadata_location.endswith(f"/{read_current(table)}")
    summaries = {one.snapshot_id: one.summary for one in table.snapshots()}
    rewrites = [name for name, summary in summaries.items() if summary and summary.operation is Operation.REPLACE]
    assert rewrites == [table.metadata.current_snapshot_id]


def make_small_manifests(lake: Lake) -> None:
    """Appends that leave a manifest each."""
    table = lake.iceberg.load_table(TABLES[0])
    with table.transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "1000"})
    write_current(lake.iceberg.load_table(TABLES[0]))
    day = dt.date(2024, 2, 1)
    for number in range(12):
        frame = entries(lake, day + dt.timedelta(days=number), number)
        frame = frame.set_column(0, frame.schema.field(0), pa.array([("cc", "dd")[number % 2]]))
        lake.committer.append(TABLES[0], frame)
