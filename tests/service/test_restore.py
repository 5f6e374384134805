"""The catalog's database is destroyed after contended commits and restored from what lies in the warehouse."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from lakehouse.errors import ConflictError, UnknownNameError
from lakehouse.lake import iceberg_properties
from lakehouse.settings import Settings
from lakehouse.tables.current import file_name, read_current
from lakehouse.tables.recovery import Act, TablePlan, plan_recovery, recover
from lakehouse.tables.storage import open_files, plain_path
from tests.commit_worker import TABLE, Place, frame, partition, start_worker

PROCESSES, COMMITS = 6, 8


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A kernel on local files and SQLite, and one on PostgreSQL and the S3 server."""
    if request.param == "sqlite":
        return Place(str(tmp_path))
    settings: Settings = request.getfixturevalue("server_settings")
    properties = iceberg_properties(settings)
    names = ("s3.endpoint", "s3.region", "s3.access-key-id", "s3.secret-access-key", "s3.force-virtual-addressing")
    warehouse = f"{properties['warehouse']}/restore-{uuid4().hex[:8]}"
    database = request.getfixturevalue("pg_database")
    return Place(str(tmp_path), database, warehouse, {name: properties[name] for name in names})


def destroy_catalog(place: Place) -> None:
    """Lose every row that the Iceberg catalog has."""
    if place.database is None:
        for path in Path(place.home).glob("iceberg.db*"):
            path.unlink()
        return
    engine = create_engine(place.database)
    with engine.begin() as connection:
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            connection.execute(text(f"DROP TABLE {table}"))
    engine.dispose()


def contend(place: Place) -> tuple[list[dict[str, Any]], Counter[tuple[str, str]]]:
    """Many processes commit to one table; gives what they were told, and the rows that must be there."""
    works: list[list[dict[str, Any]]] = [
        [
            {"do": "append", "rows": [("appended", uuid4().hex, position) for position in range(2)]}
            if number % 2
            else {"do": "replace", "sources": [f"own_{worker}"], "rows": [(f"own_{worker}", f"{worker}-{number}", 0)]}
            for number in range(COMMITS)
        ]
        for worker in range(PROCESSES)
    ]
    place.open("first").table(TABLE)
    processes = [start_worker(place, work, run_id=f"worker-{n}") for n, work in enumerate(works)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, outputs
    wanted: Counter[tuple[str, str]] = Counter()
    for worker, work in enumerate(works):
        wanted.update((row[0], row[1]) for one in work if one["do"] == "append" for row in one["rows"])
        wanted[f"own_{worker}", f"{worker}-{COMMITS - 2}"] = 1
    return [json.loads(line) for output, _ in outputs for line in output.splitlines()], wanted


def rows_of(place: Place) -> Counter[tuple[str, str]]:
    rows = place.open("check").scan(TABLE, columns=["source", "batch_id"]).to_pylist()
    return Counter((row["source"], row["batch_id"]) for row in rows)


def plan_of(place: Place, picks: dict[str, str] | None = None) -> TablePlan:
    committer = place.open("plan")
    return next(one for one in plan_recovery(committer.iceberg, picks) if one.table == TABLE)


def restore(place: Place, picks: dict[str, str] | None = None) -> TablePlan:
    committer, plan = place.open("restore"), plan_of(place, picks)
    recover(committer.iceberg, committer.locks, plan)
    return plan


def add_twin(place: Place) -> str:
    """A metadata file of the newest version that lost its swap: as real as the other, but without the last rows."""
    committer = place.open("loser")
    table = committer.table(TABLE)
    files = open_files(table.location(), committer.iceberg.properties)
    earlier = table.metadata.metadata_log[-1].metadata_file
    number = file_name(table.metadata_location).partition("-")[0]
    name = f"{number}-{uuid4()}.metadata.json"
    folder = plain_path(table.metadata_location).rpartition("/")[0]
    files.write(f"{folder}/{name}", files.read(plain_path(earlier)))
    return name


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_the_right_one_of_two_candidates_is_taken(place: Place) -> None:
    commits, wanted = contend(place)
    real = file_name(place.open("look").table(TABLE).metadata_location)
    twin = add_twin(place)
    destroy_catalog(place)
    with pytest.raises(ConflictError, match="lakehouse restore"):
        place.open("eager").append(TABLE, frame(place.open("eager"), [("late", "x" * 32, 0)]))
    plan = plan_of(place)
    assert (plan.act, plan.catalog, plan.chosen, plan.others) == (Act.REGISTER, None, real, (twin,))
    assert restore(place) == plan
    assert rows_of(place) == wanted
    table = place.open("look").table(TABLE)
    told = {one["snapshot"] for one in commits if one["changed"]}
    assert told <= {entry.snapshot_id for entry in table.metadata.snapshot_log}
    assert plan_of(place).act is Act.NOTHING
    committer = place.open("after")
    assert committer.append(TABLE, frame(committer, [("late", "x" * 32, 0)])).changed
    assert rows_of(place) == wanted + Counter({("late", "x" * 32): 1})


def test_a_catalog_from_a_backup_moves_forward(place: Place) -> None:
    committer = place.open("before")
    committer.append(TABLE, frame(committer, [("aa", "1" * 32, 0)]))
    table = committer.table(TABLE)
    old = table.metadata_location
    for number in range(3):
        committer.append(TABLE, frame(committer, [("aa", f"{number + 2}" * 32, 0)]))
    newest = committer.table(TABLE).metadata_location
    committer.iceberg.point(TABLE, newest, old)
    with pytest.raises(ConflictError, match="lakehouse restore"):
        place.open("eager").append(TABLE, frame(committer, [("aa", "9" * 32, 0)]))
    plan = restore(place)
    assert (plan.act, plan.catalog, plan.chosen) == (Act.FORWARD, file_name(old), file_name(newest))
    assert sum(rows_of(place).values()) == 4


def test_a_mark_that_is_a_commit_behind_is_written_anew(place: Place) -> None:
    committer = place.open("before")
    committer.append(TABLE, frame(committer, [("aa", "1" * 32, 0)]))
    place_work = [{"do": "append", "rows": [("aa", "2" * 32, 0)]}]
    killed = start_worker(place, place_work, run_id="killed", die="after")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    table = committer.table(TABLE)
    assert read_current(table) != file_name(table.metadata_location)
    assert restore(place).act is Act.MARK
    assert read_current(table) == file_name(table.metadata_location)
    assert sum(rows_of(place).values()) == 2


def test_what_nothing_decides_is_named_until_a_person_picks(place: Place) -> None:
    committer = place.open("before")
    for number in range(2):
        committer.append(TABLE, frame(committer, [("aa", f"{number}" * 32, 0)]))
    table = committer.table(TABLE)
    real, twin = file_name(table.metadata_location), add_twin(place)
    files = open_files(table.location(), committer.iceberg.properties)
    files.remove([f"{plain_path(table.location())}/metadata/CURRENT"])
    destroy_catalog(place)
    plan = restore(place)
    assert plan.act is Act.UNDECIDED
    assert {real, twin} <= set(plan.others)
    assert TABLE not in place.open("look").iceberg.locations()
    with pytest.raises(UnknownNameError, match="has no metadata file"):
        plan_of(place, {TABLE: "00009-nothing.metadata.json"})
    assert restore(place, {TABLE: real}).chosen == real
    assert sum(rows_of(place).values()) == 2


KILLED = """
import os, signal, sys
from lakehouse.tables import recovery
real, left = recovery.write_current, [int(os.environ["TABLES"])]
def write(table):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    real(table)
recovery.write_current = write
from lakehouse.cli import main
main(["restore", "--apply"])
"""


@pytest.mark.parametrize("tables", [0, 2])
def test_a_restore_that_is_killed_is_finished_by_the_next(tmp_path: Path, tables: int) -> None:
    from lakehouse.lake import open_lake
    from lakehouse.settings import load_settings

    settings = load_settings(home=tmp_path / "home", catalog_dir=Path(__file__).parents[2] / "catalog")
    with open_lake(settings) as lake:
        for name in (TABLE, "clean.outcomes", "meta.effective"):
            lake.committer.table(name)
        lake.committer.append(TABLE, frame(lake.committer, [("aa", "1" * 32, 0)]))
        before = lake.iceberg.locations()
    for path in (tmp_path / "home").glob("*.db*"):
        path.unlink()
    env = {**os.environ, "LAKEHOUSE_HOME": str(settings.home), "LAKEHOUSE_PROFILE": "local", "TABLES": str(tables)}
    env["LAKEHOUSE_CATALOG_DIR"] = str(settings.catalog_dir)
    run = [sys.executable, "-c", KILLED]
    assert subprocess.run(run, env=env, check=False, capture_output=True).returncode == -signal.SIGKILL
    command = [str(Path(sys.executable).parent / "lakehouse"), "restore", "--apply", "--json"]
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["undecided"] is False
    with open_lake(settings) as lake:
        assert lake.iceberg.locations() == before
        assert lake.committer.scan(TABLE, [partition("aa")]).num_rows == 1
        shutil.rmtree(tmp_path / "home" / "warehouse" / "clean")
        lost = next(one for one in plan_recovery(lake.iceberg) if one.table == "clean.outcomes")
        assert (lost.act, lost.why) == (Act.UNDECIDED, "the catalog names it, but its folder has no metadata files")
