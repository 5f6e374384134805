"""Compaction keeps every row, proves it, and leaves old files to be looked at for a while."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan

from lakehouse.clock import system_now
from lakehouse.errors import ConflictError, DataError, InvariantError
from lakehouse.model.partition import Partition
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.committer import Committer
from lakehouse.tables.content import content_hash
from lakehouse.tables.iceberg import open_iceberg
from lakehouse.tables.layout import LayoutRules
from lakehouse.tables.locks import FileLocks
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.scan import read_tasks
from lakehouse.tables.small_files import compact_tables
from lakehouse.tables.upkeep import Limits, collect_garbage, upkeep
from lakehouse.tables.writer import write_files
from tests.unit.tables.other_engine import add_position_delete
from tests.unit.tables.upkeep_lake import needed_files, stored_files

ROOT = Path(__file__).parents[3]
TABLE = "raw.entries"
DAY = dt.date(2024, 5, 1)
MIDNIGHT = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
NOW_OR_NEVER = Limits(keep_untagged=1, orphan_age=dt.timedelta(0))
HOURLY = LayoutRules(cluster_files=24)


@pytest.fixture
def committer(tmp_path: Path) -> Iterator[Committer]:
    iceberg = open_iceberg(f"sqlite:///{tmp_path / 'iceberg.db'}", tmp_path / "warehouse")
    yield Committer(iceberg, load_catalog(ROOT / "catalog"), FileLocks(tmp_path / "locks"), "run")
    iceberg.engine.dispose()


def part(source: str = "news") -> Partition:
    return Partition(source, DAY, 1)


def entries(committer: Committer, batch: int, hours: list[int], source: str = "news") -> pa.Table:
    """A batch with a row an hour; the hours count from midnight of the day in UTC."""
    rows = [
        {
            "source": source,
            "dt": DAY,
            "schema_version": 1,
            "batch_id": f"{batch:032x}",
            "task_id": "t",
            "list_url_fp": "0" * 32,
            "page_no": 1,
            "position": position,
            "url": f"https://example.com/{batch}/{position}",
            "url_fp": f"{batch * 1000 + position:032x}",
            "entry": {"title": f"第{position}条"},
            "collect_time": MIDNIGHT + dt.timedelta(hours=hour, minutes=batch % 60),
        }
        for position, hour in enumerate(hours)
    ]
    return to_arrow(rows, committer.catalog.table_schema(TABLE))


def fill(committer: Committer, batches: int, hours: list[int] | None = None, source: str = "news") -> None:
    for number in range(batches):
        committer.append(TABLE, entries(committer, number, hours or [number % 24, (number + 5) % 24], source))


def test_small_files_become_one_with_the_same_rows_in_one_snapshot(committer: Committer) -> None:
    fill(committer, 9)
    committer.append(TABLE, entries(committer, 99, [1], source="other"))
    before, other = committer.scan(TABLE, [part()]), committer.files(TABLE, part("other"))
    snapshots = len(committer.table(TABLE).snapshots())
    plan = compact_tables(committer, [TABLE], apply=False)[0]
    assert len(committer.files(TABLE, part())) == 9
    done = compact_tables(committer, [TABLE])[0]
    assert [(one.partition, one.files_before, one.files_after, one.rows) for one in done.partitions] == [
        (part(), 9, 1, 18)
    ]
    assert plan.partitions[0].files_after == 1
    assert done.partitions[0].checksum == content_hash(before)
    after = committer.scan(TABLE, [part()])
    assert content_hash(after) == content_hash(before)
    assert after.column("collect_time").to_pylist() == sorted(before.column("collect_time").to_pylist())
    assert len(committer.table(TABLE).snapshots()) == snapshots + 1
    assert committer.files(TABLE, part("other")) == other
    assert compact_tables(committer, [TABLE])[0].partitions == ()


def test_few_small_files_stay(committer: Committer) -> None:
    fill(committer, 7)
    assert compact_tables(committer, [TABLE])[0].partitions == ()
    assert compact_tables(committer, [TABLE], LayoutRules(min_files=7))[0].commits == 1


def test_the_same_batch_again_adds_nothing_after_compaction_and_expiry(committer: Committer) -> None:
    fill(committer, 9)
    later = system_now() + dt.timedelta(days=30)
    for again in (
        lambda: compact_tables(committer, [TABLE]),
        lambda: upkeep(committer, [TABLE], NOW_OR_NEVER, now=later),
    ):
        again()
        fresh = Committer(committer.iceberg, committer.catalog, committer.locks, "fresh")  # with nothing remembered
        for number in (0, 4, 8):
            assert not fresh.append(TABLE, entries(fresh, number, [number % 24, (number + 5) % 24])).changed
    table = committer.table(TABLE)
    assert len(table.snapshots()) == 1
    assert stored_files(table) == needed_files(table)
    assert committer.append(TABLE, entries(committer, 9, [1])).changed
    assert committer.scan(TABLE, [part()]).num_rows == 19


def test_old_files_stay_for_the_observation_period(committer: Committer) -> None:
    fill(committer, 9)
    old = [file.path for file in committer.files(TABLE, part())]
    compact_tables(committer, [TABLE], observe=dt.timedelta(days=3))
    upkeep(committer, [TABLE], NOW_OR_NEVER, now=system_now() + dt.timedelta(days=2))
    assert all(Path(path.removeprefix("file://")).exists() for path in old)
    assert committer.restore(TABLE, part(), old).changed is False  # the rows are the same
    assert len(committer.table(TABLE).snapshots()) == 1
    removed = collect_garbage(committer, TABLE, orphan_age=None, now=system_now() + dt.timedelta(days=4))
    assert removed.kinds == {"data": 9}
    table = committer.table(TABLE)
    assert stored_files(table) == needed_files(table)


def test_a_partition_with_delete_files_is_refused_and_the_others_are_not(committer: Committer) -> None:
    fill(committer, 9)
    fill(committer, 9, source="other")
    table = committer.table(TABLE)
    (target, *_) = [one.file for one in table.scan().plan_files() if "source=news" in one.file.file_path]
    add_position_delete(table, target)
    done = compact_tables(committer, [TABLE])[0]
    assert (done.refused, [one.partition for one in done.partitions]) == ((part(),), [part("other")])
    assert committer.scan(TABLE, [part()]).num_rows == 17
    with pytest.raises(ConflictError, match="carries delete files"):
        committer.compact(TABLE, [part()], LayoutRules(), lambda *_: None)


def test_rows_that_would_change_stop_the_compaction(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(committer, 9)
    monkeypatch.setattr("lakehouse.tables.compaction.read_tasks", lambda *args: read_tasks(*args).slice(1))
    with pytest.raises(InvariantError, match="would not keep the rows: 18 rows"):
        compact_tables(committer, [TABLE])
    assert len(committer.files(TABLE, part())) == 9


def test_a_day_of_many_files_is_clustered_by_hour(committer: Committer) -> None:
    fill(committer, 30, [*range(24), -400, 900])
    before = content_hash(committer.scan(TABLE))
    done = compact_tables(committer, [TABLE], HOURLY)[0]
    assert done.partitions[0].clustered
    assert content_hash(committer.scan(TABLE)) == before
    assert len(committer.files(TABLE, part())) == 26
    for hour in (0, 7, 23):
        tasks = list(committer.table(TABLE).scan(row_filter=one_hour(hour)).plan_files())
        assert [task.file.record_count for task in tasks] == [30]
    assert compact_tables(committer, [TABLE], HOURLY)[0].partitions == ()


def test_what_comes_after_clustering_goes_into_its_hours(committer: Committer) -> None:
    fill(committer, 30, list(range(24)))
    compact_tables(committer, [TABLE], HOURLY)
    for number in range(30, 38):
        committer.append(TABLE, entries(committer, number, [7, 8]))
    before = content_hash(committer.scan(TABLE))
    assert compact_tables(committer, [TABLE], HOURLY)[0].partitions[0].files_before == 32
    assert content_hash(committer.scan(TABLE)) == before
    assert len(committer.files(TABLE, part())) == 24
    rows = [task.file.record_count for task in committer.table(TABLE).scan(row_filter=one_hour(7)).plan_files()]
    assert rows == [38]
    assert not committer.append(TABLE, entries(committer, 33, [7, 8])).changed


def test_a_day_larger_than_memory_allows_is_read_a_few_hours_at_a_time(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        committer.append(TABLE, entries(committer, number, [number % 24, number % 24 + 1]))
    before = content_hash(committer.scan(TABLE))
    sizes: list[int] = []

    def watched(*args: object) -> pa.Table:
        rows = read_tasks(*args)  # type: ignore[arg-type]
        sizes.append(rows.num_rows)
        return rows

    monkeypatch.setattr("lakehouse.tables.compaction.read_tasks", watched)
    compact_tables(committer, [TABLE], LayoutRules(cluster_files=24, piece_bytes=20_000))
    assert content_hash(committer.scan(TABLE)) == before
    assert len(sizes) > 3
    assert sum(sizes) == 60
    tasks = list(committer.table(TABLE).scan(row_filter=one_hour(7)).plan_files())
    assert [task.file.record_count for task in tasks] == [2]


def one_hour(hour: int) -> And:
    start = MIDNIGHT + dt.timedelta(hours=hour)
    return And(
        EqualTo(term="source", value="news"),
        And(
            GreaterThanOrEqual(term="collect_time", value=start.isoformat()),
            LessThan(term="collect_time", value=(start + dt.timedelta(hours=1)).isoformat()),
        ),
    )


def test_an_append_during_compaction_is_kept(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(committer, 9)
    calls = 0

    def write_while_another_appends(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            committer.append(TABLE, entries(committer, 50, [3]))
        return write_files(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("lakehouse.tables.compaction.write_files", write_while_another_appends)
    compact_tables(committer, [TABLE])
    assert committer.scan(TABLE).num_rows == 19
    assert len(committer.files(TABLE, part())) == 1
    assert calls == 2  # planned again with the file that came meanwhile


def test_orphans_stay_where_the_listing_lacks_what_is_needed(committer: Committer) -> None:
    fill(committer, 3)
    table = committer.table(TABLE)
    orphan = Path(table.location().removeprefix("file://")) / "data" / "lost.parquet"
    orphan.write_bytes(b"never committed")
    gone = Path(committer.files(TABLE, part())[0].path.removeprefix("file://"))
    gone.rename(gone.with_suffix(".away"))
    with pytest.raises(DataError, match="are gone"):
        upkeep(committer, [TABLE], NOW_OR_NEVER)
    assert orphan.exists()
    gone.with_suffix(".away").rename(gone)
    upkeep(committer, [TABLE], NOW_OR_NEVER)
    assert not orphan.exists()
