from __future__ import annotations

import datetime as dt
import itertools
import multiprocessing
import os
import random
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from lakehouse.clock import Clock, system_now
from lakehouse.errors import ConflictError, UnknownNameError
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decisions
from lakehouse.tables.expiry import commit_expiry, plan_expiry
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.storage import LocalFiles
from lakehouse.tables.tags import drop_tag, tag_release
from lakehouse.tables.upkeep import Limits, collect_garbage, expire, upkeep
from tests.unit.tables.upkeep_lake import (
    TABLE,
    ids_in,
    load,
    metadata_folder,
    needed_files,
    open_committer,
    partition,
    replace,
    rows,
    stored_files,
)

NO_LISTING = Limits(keep_untagged=4, orphan_age=None)
EVERYTHING = Limits(keep_untagged=4, orphan_age=dt.timedelta(0))


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


def test_expiry_keeps_the_newest_untagged_and_all_tagged(committer: Committer) -> None:
    for number in range(8):
        replace(committer, 0, [f"v{number}"])
        if number == 1:
            tag_release(committer, TABLE, "one")
    before = load(committer).metadata
    found = expire(committer, TABLE, keep_untagged=3)
    after = load(committer)
    assert len(found.snapshots) == 4
    assert (found.snapshots_left, found.tags_left) == (4, 1)
    kept = [snapshot.snapshot_id for snapshot in after.metadata.snapshots]
    assert kept == [before.snapshots[1].snapshot_id, *(s.snapshot_id for s in before.snapshots[-3:])]
    assert ids_in(after, before.refs["release-one"].snapshot_id) == ["v1"]
    assert ids_in(after) == ["v7"]


def test_nothing_to_expire_commits_nothing(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    before = load(committer).metadata_location
    for _ in range(2):
        assert expire(committer, TABLE).empty
        assert upkeep(committer, [TABLE])[0].removal.files == 0
    assert load(committer).metadata_location == before


def test_what_only_expired_snapshots_reached_is_removed(committer: Committer) -> None:
    for number in range(12):
        replace(committer, number % 3, [f"v{number}"])
    report = upkeep(committer, [TABLE], NO_LISTING)[0]
    table = load(committer)
    assert len(report.expiry.snapshots) == 8
    assert report.removal.kinds["manifest list"] == 8
    assert report.removal.kinds["data"] == 6
    assert stored_files(table) == needed_files(table)
    assert ids_in(table) == ["v10", "v11", "v9"]
    assert not list(metadata_folder(table).glob("garbage-*"))


def test_a_plan_says_what_applying_does_and_changes_nothing(committer: Committer) -> None:
    for number in range(9):
        replace(committer, 0, [f"v{number}"])
    table = load(committer)
    orphan = metadata_folder(table).parent / "data" / "lost.parquet"
    orphan.write_bytes(b"never committed")
    before = {path: path.stat().st_mtime_ns for path in metadata_folder(table).parent.rglob("*")}
    plan = upkeep(committer, [TABLE], EVERYTHING, apply=False)[0]
    assert {path: path.stat().st_mtime_ns for path in metadata_folder(table).parent.rglob("*")} == before
    assert load(committer).metadata_location == table.metadata_location
    done = upkeep(committer, [TABLE], EVERYTHING)[0]
    assert plan.expiry == done.expiry
    assert (plan.removal, plan.applied, done.applied) == (done.removal, False, True)
    assert not orphan.exists()


class History:
    """A random history of one table, and what its snapshots and fixes hold."""

    def __init__(self, committer: Committer, seed: int) -> None:
        self.committer = committer
        self.choose = random.Random(seed)
        self.decisions = Decisions(committer, Clock.in_zone("Asia/Shanghai"))
        self.decisions.record("note", {})
        self.recorded: set[str] = set()
        self.seen: dict[int, list[str]] = {}

    def go(self, step: int) -> None:
        """Do one thing, then note what every table snapshot holds."""
        actions = [self.replace, self.replace, self.append, self.fix]
        if self.seen:
            actions += [self.tag, self.branch, self.drop, self.keep, self.move_main]
        self.choose.choice(actions)(step)
        table = load(self.committer)
        for snapshot in table.metadata.snapshots:
            self.seen.setdefault(snapshot.snapshot_id, ids_in(table, snapshot.snapshot_id))

    def append(self, step: int) -> None:
        frame = rows(self.committer, self.choose.randrange(4), [f"s{step}"])
        self.committer.append(TABLE, frame, id_column="fetch_id")

    def replace(self, step: int) -> None:
        replace(self.committer, self.choose.randrange(4), [f"s{step}", f"t{step}"])

    def fix(self, step: int) -> None:
        number = self.choose.randrange(4)
        old = [file.path for file in self.committer.files(TABLE, partition(number))]
        self.decisions.record("fix", {"files": old, "step": step})
        self.recorded.update(path.removeprefix("file://") for path in old)
        replace(self.committer, number, [f"fixed{step}"])
        if old and self.choose.random() < 0.5:
            self.committer.restore(TABLE, partition(number), old)

    def tag(self, step: int) -> None:
        tag_release(self.committer, TABLE, f"r{step}")

    def branch(self, step: int) -> None:
        table = load(self.committer)
        start = self.choose.choice(table.metadata.snapshots).snapshot_id
        table.manage_snapshots().create_branch(start, f"b{step}").commit()
        if self.choose.random() < 0.5:
            extra = rows(self.committer, self.choose.randrange(4), [f"branch{step}"])
            table.append(extra.cast(table.schema().as_arrow()), branch=f"b{step}")

    def drop(self, step: int) -> None:
        table = load(self.committer)
        names = [name for name in table.refs() if name != "main"]
        if names:
            drop_ref(self.committer, self.choose.choice(names))

    def keep(self, step: int) -> None:
        upkeep(self.committer, [TABLE], NO_LISTING)

    def move_main(self, step: int) -> None:
        table = load(self.committer)
        target = self.choose.choice(table.metadata.snapshots).snapshot_id
        table.manage_snapshots().set_current_snapshot(snapshot_id=target).commit()


def drop_ref(committer: Committer, name: str) -> None:
    """Drop a tag or a branch."""
    if not drop_tag(committer, TABLE, name):
        load(committer).manage_snapshots().remove_branch(name).commit()


@pytest.mark.parametrize("seed", range(4))
def test_any_history_keeps_what_is_needed_and_nothing_else(committer: Committer, seed: int) -> None:
    """Appends, replaces, fixes, rollbacks, tags, branches and moves of main, with upkeep now and then."""
    history = History(committer, seed)
    for step in range(32):
        history.go(step)
    upkeep(committer, [TABLE, "meta.decisions"], EVERYTHING)
    table = load(committer)
    for snapshot in table.metadata.snapshots:
        assert ids_in(table, snapshot.snapshot_id) == history.seen[snapshot.snapshot_id]
    untagged = {s.snapshot_id for s in table.metadata.snapshots} - {r.snapshot_id for r in table.refs().values()}
    assert len(untagged) <= 4
    assert stored_files(table) == needed_files(table) | history.recorded
    # What the last tags and branches held goes, too, and without looking through the storage.
    for name in table.refs():
        if name != "main":
            drop_ref(committer, name)
    upkeep(committer, [TABLE], Limits(keep_untagged=1, orphan_age=None))
    table = load(committer)
    assert len(table.metadata.snapshots) == 1
    assert stored_files(table) == needed_files(table) | history.recorded


def test_old_files_of_a_fix_stay_and_can_be_rolled_back_to(committer: Committer) -> None:
    replace(committer, 0, ["wrong", "right"])
    old = [file.path for file in committer.files(TABLE, partition(0))]
    Decisions(committer, Clock.in_zone("Asia/Shanghai")).record("fix", {"old": {"files": [{"path": old[0]}]}})
    for number in range(9):
        replace(committer, 0, [f"v{number}"])
    upkeep(committer, [TABLE], Limits(keep_untagged=1, orphan_age=dt.timedelta(0)))
    committer.restore(TABLE, partition(0), old)
    assert ids_in(load(committer)) == ["right", "wrong"]


def test_files_of_other_engines_can_be_rolled_back_to(committer: Committer) -> None:
    replace(committer, 0, ["ours"])
    table = load(committer)
    table.append(rows(committer, 0, ["theirs"]).cast(table.schema().as_arrow()))
    old = [file.path for file in committer.files(TABLE, partition(0))]
    Decisions(committer, Clock.in_zone("Asia/Shanghai")).record("fix", {"files": old})
    replace(committer, 0, ["wrong"])
    upkeep(committer, [TABLE], Limits(keep_untagged=1, orphan_age=dt.timedelta(0)))
    committer.restore(TABLE, partition(0), old)
    assert ids_in(load(committer)) == ["ours", "theirs"]


def _die_after(removals: int, home: Path) -> None:
    """Run upkeep in this process, which dies in the middle of removing files."""
    committer = open_committer(home)
    count = 0
    remove = LocalFiles.remove

    def remove_some(self: LocalFiles, paths: Iterable[str]) -> int:
        nonlocal count
        for path in paths:
            if count == removals:
                os._exit(9)
            remove(self, [path])
            count += 1
        return count

    LocalFiles.remove = remove_some  # type: ignore[method-assign]
    upkeep(committer, [TABLE], NO_LISTING)
    os._exit(0)


def _die_before_commit(home: Path) -> None:
    committer = open_committer(home)
    committer.iceberg.commit_table = lambda *_: os._exit(9)  # type: ignore[method-assign]
    upkeep(committer, [TABLE], NO_LISTING)


@pytest.mark.parametrize("removals", [0, 7])
def test_a_run_that_dies_while_removing_is_finished_by_the_next(
    committer: Committer, tmp_path: Path, removals: int
) -> None:
    for number in range(12):
        replace(committer, number % 3, [f"v{number}"])
    child = multiprocessing.get_context("spawn").Process(target=_die_after, args=(removals, tmp_path))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert ids_in(load(committer)) == ["v10", "v11", "v9"]
    upkeep(committer, [TABLE], NO_LISTING)
    table = load(committer)
    assert stored_files(table) == needed_files(table)
    assert not list(metadata_folder(table).glob("garbage-*"))


def test_a_run_that_dies_before_its_commit_removes_nothing(committer: Committer, tmp_path: Path) -> None:
    for number in range(8):
        replace(committer, 0, [f"v{number}"])
    before = stored_files(load(committer))
    child = multiprocessing.get_context("spawn").Process(target=_die_before_commit, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert len(list(metadata_folder(load(committer)).glob("garbage-*"))) == 1
    assert collect_garbage(committer, TABLE, orphan_age=None).files == 0
    assert stored_files(load(committer)) == before
    assert not list(metadata_folder(load(committer)).glob("garbage-*"))


def test_a_listed_file_that_a_fix_needs_meanwhile_stays(committer: Committer) -> None:
    replace(committer, 0, ["old"])
    old = [file.path for file in committer.files(TABLE, partition(0))]
    for number in range(3):
        replace(committer, 0, [f"v{number}"])
    expire(committer, TABLE, keep_untagged=1)
    Decisions(committer, Clock.in_zone("Asia/Shanghai")).record("fix", {"files": old})
    collect_garbage(committer, TABLE, orphan_age=dt.timedelta(0))
    assert committer.restore(TABLE, partition(0), old).changed
    assert ids_in(load(committer)) == ["old"]


def test_orphans_go_when_they_are_old_and_other_files_stay(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    table = load(committer)
    live = [Path(path) for path in stored_files(table)]
    folder = metadata_folder(table)
    twin = folder / "00001-11111111-2222-3333-4444-555555555555.metadata.json"
    old, young = folder / "lost-m0.avro", folder / "new-m0.avro"
    note = folder.parent / "data" / "note.txt"
    for path in (twin, old, young, note):
        path.write_bytes(b"x")
    week_ago = system_now().timestamp() - 7 * 86_400
    for path in (twin, old, note, *live, *folder.glob("0*.metadata.json")):
        os.utime(path, (week_ago, week_ago))
    kept = {entry.metadata_file for entry in table.metadata.metadata_log} | {table.metadata_location}
    removed = collect_garbage(committer, TABLE)
    assert removed.kinds == {"metadata": 1, "manifest": 1}
    assert not twin.exists()
    assert not old.exists()
    assert young.exists()
    assert note.exists()
    assert (folder / "CURRENT").exists()
    assert all(Path(path.removeprefix("file://")).exists() for path in kept)
    assert ids_in(load(committer)) == ["a"]


def test_a_catalog_older_than_the_table_removes_nothing(committer: Committer) -> None:
    from sqlalchemy import text

    replace(committer, 0, ["old"])
    backup = load(committer).metadata_location
    replace(committer, 0, ["new"])
    newest = load(committer).metadata_location
    iceberg: SqlCatalog = committer.iceberg
    assert isinstance(iceberg, SqlCatalog)
    change = text("update iceberg_tables set metadata_location = :location where table_name = 'outcomes'")
    with iceberg.engine.begin() as connection:
        connection.execute(change, {"location": backup})
    before = stored_files(load(committer))
    Decisions(committer, Clock.in_zone("Asia/Shanghai")).record("note", {})
    with pytest.raises(ConflictError, match="restored from a backup"):
        upkeep(committer, [TABLE, "meta.decisions"], EVERYTHING, clock=_tomorrow())
    assert any(name.startswith("day-") for name in committer.iceberg.load_table("meta.decisions").refs())
    for change_it in (
        lambda: replace(committer, 0, ["newer"]),
        lambda: replace(committer, 0, ["old"]),
        lambda: tag_release(committer, TABLE, "one"),
    ):
        with pytest.raises(ConflictError, match="restored from a backup"):
            change_it()
    assert stored_files(load(committer)) >= before
    with iceberg.engine.begin() as connection:
        connection.execute(change, {"location": newest})
    assert ids_in(load(committer)) == ["new"]
    upkeep(committer, [TABLE], EVERYTHING)


def _tomorrow() -> Clock:
    return Clock.in_zone("Asia/Shanghai", lambda: system_now() + dt.timedelta(days=1))


@pytest.mark.parametrize("plain", [False, True])
def test_a_tag_made_after_the_plan_is_never_dropped(committer: Committer, tmp_path: Path, plain: bool) -> None:
    """With our catalog, and with PyIceberg's own, which loads the table anew for each commit."""
    for number in range(4):
        replace(committer, 0, [f"v{number}"])
    iceberg: SqlCatalog = committer.iceberg
    if plain:
        iceberg = SqlCatalog("lakehouse", **{k: str(v) for k, v in iceberg.properties.items()})
    stale = iceberg.load_table(TABLE)
    plan = plan_expiry(stale.metadata, TABLE, keep_untagged=1, keep_tags=100, now=system_now())
    load(committer).manage_snapshots().create_tag(plan.snapshots[0], "mine").commit()
    with pytest.raises(CommitFailedException):
        commit_expiry(stale, plan)
    assert "mine" in load(committer).refs()
    if plain and isinstance(iceberg, SqlCatalog):
        iceberg.engine.dispose()


def test_upkeep_beside_writers_loses_nothing(tmp_path: Path) -> None:
    written: list[list[str]] = [[], [], []]
    failed: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        mine = open_committer(tmp_path, f"writer-{number}")
        try:
            for step in range(12):
                mine.append(TABLE, rows(mine, number, [f"w{number}-{step}"]), id_column="fetch_id")
                written[number].append(f"w{number}-{step}")
                replace(mine, number + 10, [f"r{number}-{step}"])
        except BaseException as error:  # noqa: BLE001  whatever it is, the test fails with it
            failed.append(error)

    def keep() -> None:
        mine = open_committer(tmp_path, "upkeep")
        while not done.is_set():
            try:
                upkeep(mine, [TABLE], Limits(keep_untagged=20, orphan_age=dt.timedelta(minutes=10)))
            except UnknownNameError:
                continue
            except BaseException as error:  # noqa: BLE001
                failed.append(error)
                return

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    keeper = threading.Thread(target=keep)
    for thread in (*writers, keeper):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    keeper.join()
    assert failed == []
    committer = open_committer(tmp_path)
    upkeep(committer, [TABLE], Limits(keep_untagged=2, orphan_age=dt.timedelta(0)))
    table = load(committer)
    assert ids_in(table) == sorted([*itertools.chain(*written), *(f"r{number}-11" for number in range(3))])
    assert stored_files(table) == needed_files(table)


def test_a_table_that_does_not_exist_is_not_made(committer: Committer) -> None:
    with pytest.raises(UnknownNameError, match=r"clean\.outcomes does not exist"):
        upkeep(committer, [TABLE])
    assert committer.iceberg.list_namespaces() == []


def test_files_registered_from_elsewhere_are_not_ours(committer: Committer, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    replace(committer, 0, ["a"])
    table = load(committer)
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(rows(committer, 5, ["foreign"]), foreign)
    table.add_files([str(foreign)])
    committer.replace(TABLE, rows(committer, 5, []), [partition(5)])
    replace(committer, 0, ["b"])
    upkeep(committer, [TABLE], Limits(keep_untagged=1, orphan_age=dt.timedelta(0)))
    assert foreign.exists()
    assert ids_in(load(committer)) == ["b"]


def test_page_bodies_are_never_removed(committer: Committer) -> None:
    name = "raw.snapshots"
    spec = committer.catalog.table_schema(name)
    for number in range(3):
        body = {
            "source": "source_0",
            "dt": partition(0).dt,
            "schema_version": 1,
            "fetch_id": f"f{number}",
            "batch_id": "b",
            "part": "served",
            "url_fp": "u",
            "snap_key": f"snap/{number}",
            "media_type": "text/html",
            "charset": None,
            "content_sha256": "0",
            "collect_time": system_now(),
            "body": b"<html>",
        }
        committer.replace(name, to_arrow([body], spec), [partition(0)])
    removed = upkeep(committer, [name], Limits(keep_untagged=1, orphan_age=dt.timedelta(0)))[0].removal
    assert removed.kinds["manifest list"] == 2
    assert "data" not in removed.kinds
    table = committer.iceberg.load_table(name)
    assert len({path for path in stored_files(table) if path.endswith(".parquet")}) == 3
