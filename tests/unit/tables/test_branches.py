"""A branch shows some partitions as they were, is one table snapshot beside main, and goes after its age."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyiceberg.table import Table

from lakehouse.clock import system_now
from lakehouse.errors import ConflictError, UnknownNameError
from lakehouse.tables.branches import Branch, EarlierFiles, drop_branch, make_branch
from lakehouse.tables.committer import Committer
from lakehouse.tables.current import read_current
from lakehouse.tables.tags import tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.unit.tables.other_engine import add_position_delete
from tests.unit.tables.upkeep_lake import (
    TABLE,
    ids_in,
    load,
    needed_files,
    open_committer,
    partition,
    replace,
    stored_files,
)

WEEK = timedelta(days=7)
STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


def files(committer: Committer, number: int) -> list[str]:
    return [one.path for one in committer.files(TABLE, partition(number))]


def on_branch(table: Table, name: str) -> list[str]:
    return ids_in(table, table.metadata.refs[name].snapshot_id)


def test_a_branch_holds_earlier_files_and_main_stays_where_it_is(committer: Committer) -> None:
    replace(committer, 0, ["a", "b"])
    replace(committer, 1, ["x"])
    early = files(committer, 0)
    replace(committer, 0, ["c"])
    before = load(committer)
    made = make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), early)], age=WEEK)
    assert made == Branch(TABLE, "old", changed=True)
    table = load(committer)
    assert table.metadata.current_snapshot_id == before.metadata.current_snapshot_id
    assert [one.snapshot_id for one in table.metadata.snapshot_log] == [
        one.snapshot_id for one in before.metadata.snapshot_log
    ]
    assert on_branch(table, "old") == ["a", "b", "x"]
    assert ids_in(table) == ["c", "x"]
    assert table.metadata.refs["old"].max_ref_age_ms == WEEK / timedelta(milliseconds=1)
    assert table.metadata_location.endswith(f"/{read_current(table)}")
    assert not make_branch(committer, TABLE, "old", [], age=WEEK).changed
    replace(committer, 1, ["y"])
    assert on_branch(load(committer), "old") == ["a", "b", "x"]


def test_a_branch_may_hold_nothing_or_what_is_there(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    replace(committer, 1, ["x"])
    stored = stored_files(load(committer))
    make_branch(committer, TABLE, "same", [EarlierFiles(partition(1), files(committer, 1))], age=WEEK)
    assert {path for path in stored_files(load(committer)) - stored if path.endswith(".parquet")} == set()
    make_branch(committer, TABLE, "none", [EarlierFiles(partition(0), [])], age=WEEK)
    table = load(committer)
    assert (on_branch(table, "same"), on_branch(table, "none")) == (["a", "x"], ["x"])


def test_upkeep_keeps_a_branch_for_its_age_and_then_drops_all_of_it(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    early = files(committer, 0)
    tag_release(committer, TABLE, "first")
    replace(committer, 0, ["b"])
    make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), early)], age=WEEK)
    for number in range(3):
        replace(committer, 1, [f"x{number}"])
    upkeep(committer, [TABLE], STRICT, now=system_now() + timedelta(days=6))
    assert on_branch(load(committer), "old") == ["a"]
    assert needed_files(load(committer)) == stored_files(load(committer))
    [report] = upkeep(committer, [TABLE], STRICT, now=system_now() + timedelta(days=8))
    assert report.expiry.branches == ("old",)
    assert set(load(committer).metadata.refs) == {"main", "release-first"}
    replace(committer, 1, ["y"])
    upkeep(committer, [TABLE], STRICT, now=system_now() + timedelta(days=9))
    table = load(committer)
    assert len(table.metadata.snapshots) == 2
    assert needed_files(table) == stored_files(table)
    assert ids_in(table) == ["b", "y"]


def test_a_branch_is_dropped_by_hand_and_main_never(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    tag_release(committer, TABLE, "first")
    make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), [])], age=WEEK)
    assert drop_branch(committer, TABLE, "old").changed
    for name in ("old", "main", "release-first"):
        assert not drop_branch(committer, TABLE, name).changed
    assert set(load(committer).metadata.refs) == {"main", "release-first"}


def test_a_table_that_never_had_rows_gets_no_branch(committer: Committer) -> None:
    assert not make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), [])], age=WEEK).changed
    assert not drop_branch(committer, TABLE, "old").changed


def test_what_cannot_be_branched_says_why(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    [path] = files(committer, 0)
    gone = path.replace(".parquet", "-gone.parquet")
    with pytest.raises(UnknownNameError, match="is gone"):
        make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), [gone])], age=WEEK)
    [task] = load(committer).scan().plan_files()
    add_position_delete(load(committer), task.file)
    with pytest.raises(ConflictError, match="carries delete files"):
        make_branch(committer, TABLE, "old", [EarlierFiles(partition(0), [])], age=WEEK)
    assert set(load(committer).metadata.refs) == {"main"}
