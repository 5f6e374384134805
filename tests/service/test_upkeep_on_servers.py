"""Upkeep where tables are fixed, tagged, branched, expired and attacked; on MinIO with Trino, and on local files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from trino.exceptions import TrinoQueryError

from lakehouse.cli.verify import open_engines
from lakehouse.query import connect, verify
from lakehouse.query.trino import read_rows
from lakehouse.settings import Settings
from lakehouse.tables.tags import drop_tag, tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.service.kinds_lake import KindsLake, open_kinds_lake, partition, trino_access

EVERYTHING = Limits(keep_untagged=3, orphan_age=dt.timedelta(0))


def test_everything_is_still_read_and_nothing_else_is_left_on_local_files(local_home: Settings, tmp_path: Path) -> None:
    with open_kinds_lake(local_home, tmp_path) as kinds:
        expected, recorded = _live_through_much(kinds)
        _check_rows(kinds, expected)
        _check_storage(kinds, recorded)


def test_everything_is_still_read_and_nothing_else_is_left_on_the_servers(
    server_settings: Settings, tmp_path: Path
) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        expected, recorded = _live_through_much(kinds)
        _trino_may_not_expire(kinds)
        _check_rows(kinds, expected)
        _check_storage(kinds, recorded)
        _trino_compacts(kinds)
        upkeep(kinds.committer, [kinds.name], EVERYTHING)
        _check_rows(kinds, expected)
        _check_storage(kinds, recorded)


def _live_through_much(kinds: KindsLake) -> tuple[dict[str, list[str]], set[str]]:
    """Replaces, fixes, restores, tags and branches made and dropped, upkeep in between.

    Returns names by ref (`main` and the tags that stand), and the files that a recorded fix needs.
    """
    recorded: set[str] = set()
    for step in range(4):
        kinds.replace(step % 3, [f"a{step}", f"b{step}", f"c{step}"])
    tag_release(kinds.committer, kinds.name, "kept")
    kept = kinds.names_in()
    tag_release(kinds.committer, kinds.name, "dropped")
    for step in range(4, 8):
        old = [file.path for file in kinds.committer.files(kinds.name, partition(0))]
        kinds.lake.decisions.record("fix", {"files": old, "table": kinds.name, "step": step})
        recorded.update(old)
        kinds.replace(0, [f"fixed{step}"])
        kinds.committer.append(kinds.name, kinds.frame(1, [f"more{step}"]), id_column="name")
    upkeep(kinds.committer, [kinds.name], EVERYTHING)
    kinds.committer.restore(kinds.name, partition(0), sorted(recorded)[:1])
    _make_and_drop_branches(kinds)
    drop_tag(kinds.committer, kinds.name, "release-dropped")
    for step in range(8, 14):
        kinds.replace(2, [f"last{step}", f"also{step}"])
    upkeep(kinds.committer, [kinds.name], EVERYTHING)
    return {"main": kinds.names_in(), "release-kept": kept}, recorded


def _make_and_drop_branches(kinds: KindsLake) -> None:
    current = kinds.table().metadata.current_snapshot_id
    assert current is not None
    for name in ("empty", "written", "stays"):
        kinds.table().manage_snapshots().create_branch(current, name).commit()
    table = kinds.table()
    extra = kinds.frame(5, ["on a branch"]).cast(table.schema().as_arrow())
    for name in ("written", "stays"):
        kinds.table().append(extra, branch=name)
    for name in ("empty", "written"):
        kinds.table().manage_snapshots().remove_branch(name).commit()


def _trino_may_not_expire(kinds: KindsLake) -> None:
    """Trino refuses to expire; its removal of orphans runs, and removes nothing."""
    before = kinds.stored()
    location = kinds.table().metadata_location
    for user, catalog in (("reader", "lakehouse"), ("upkeep", "lakehouse_upkeep")):
        access = trino_access(kinds, user, catalog)
        with pytest.raises(TrinoQueryError, match="GC is disabled"):
            list(read_rows(access, f"ALTER TABLE {kinds.name} EXECUTE expire_snapshots(retention_threshold => '7d')"))
        list(read_rows(access, f"ALTER TABLE {kinds.name} EXECUTE remove_orphan_files(retention_threshold => '7d')"))
    assert kinds.stored() == before
    assert kinds.table().metadata_location == location


def _trino_compacts(kinds: KindsLake) -> None:
    """Trino commits without our lock and without `CURRENT`."""
    before = kinds.table().metadata.current_snapshot_id
    list(read_rows(trino_access(kinds, "upkeep", "lakehouse_upkeep"), f"ALTER TABLE {kinds.name} EXECUTE optimize"))
    assert kinds.table().metadata.current_snapshot_id != before


def _check_rows(kinds: KindsLake, expected: dict[str, list[str]]) -> None:
    """Every table snapshot that is left is read; refs hold what they held, in every engine."""
    table = kinds.table()
    refs = table.refs()
    assert set(refs) == {"main", "release-kept", "stays"}
    for snapshot in table.metadata.snapshots:
        assert kinds.names_in(snapshot.snapshot_id)
    for ref, names in expected.items():
        assert kinds.names_in(refs[ref].snapshot_id) == names
    assert "on a branch" in kinds.names_in(refs["stays"].snapshot_id)
    untagged = {s.snapshot_id for s in table.metadata.snapshots} - {refs["release-kept"].snapshot_id}
    assert len(untagged) == 3
    with connect(kinds.lake) as db:
        assert db.execute(f"select name from {kinds.name} order by name").fetchall() == [
            (name,) for name in expected["main"]
        ]
    report = verify(kinds.lake.iceberg, open_engines(kinds.lake), tables=[kinds.name])
    assert report.differences == ()
    assert {reading.rows for reading in report.tables[0].readings} == {len(expected["main"])}


def _check_storage(kinds: KindsLake, recorded: set[str]) -> None:
    needed = kinds.needed()
    assert recorded - needed, "the fix must need files that no table snapshot has"
    assert kinds.stored() == needed | recorded
