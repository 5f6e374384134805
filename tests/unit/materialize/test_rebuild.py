"""The index is deleted and made anew from tables, decisions and objects; it says the same as before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.ledger.tables import batch, partition_info, task
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.materialize.marks import newest_marks
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.rebuild import NOT_DERIVED, rebuild
from lakehouse.materialize.retention import retire
from lakehouse.model.partition import Layer, PartitionState, SourceDay
from lakehouse.settings import Settings
from lakehouse.tables.fixes import Code
from lakehouse.tables.normalize import to_arrow
from tests.unit.materialize.conftest import BROKEN_DAY, QUIET_DAY

NOT_KNOWN_OF_BATCHES = {"snapshots", "uploaded_at", "committed_at"}
DAILY = "demo_daily"
LAYERS = (materialize_raw, materialize_clean, materialize_feature)


def letters(day: str) -> SourceDay:
    return SourceDay(DAILY, date.fromisoformat(day))


def rows_of(lake: Lake, table: sa.Table, left_out: set[str]) -> list[dict[str, Any]]:
    """All rows of a ledger table without the columns that are no truth."""
    keys = list(table.primary_key.columns)
    with lake.ledger.read() as connection:
        found = connection.execute(sa.select(table).order_by(*keys)).mappings().all()
    return [{name: value for name, value in row.items() if name not in left_out} for row in found]


def index_of(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    return {
        "partition_info": rows_of(lake, partition_info, set(NOT_DERIVED)),
        "batch": rows_of(lake, batch, NOT_KNOWN_OF_BATCHES),
    }


def forget_index(lake: Lake) -> None:
    with lake.ledger.write() as connection:
        connection.execute(sa.delete(partition_info))
        connection.execute(sa.delete(batch))


def states_of(lake: Lake) -> dict[tuple[str, str], PartitionState]:
    infos = PartitionIndex(lake.ledger).list()
    return {(info.table, f"{info.partition.source}|{info.partition.dt}"): info.state for info in infos}


@pytest.fixture(scope="module")
def lived_in(lake: Lake, town: Settings) -> Iterator[Lake]:
    """A lake with complete, empty, failed, open and fixed days, and one that retention took."""
    today = lake.clock.today()
    days = [letters(day) for day in ("2025-03-01", "2025-03-02", "2025-03-03", QUIET_DAY)]
    old = SourceDay(DAILY, today - timedelta(days=1001))
    for materialize in LAYERS:
        materialize(lake, [*days, old, SourceDay("demo_gazette", today), SourceDay("demo_nasty", today)])
    materialize_raw(lake, [letters(BROKEN_DAY)])
    materialize_raw(lake, [letters("2025-03-05")])
    for materialize in LAYERS[:2]:
        materialize(lake, [letters("2025-03-04")])
    apply_fixes(lake, days[:1], code=Code.BUG, reason="again", who="ann")
    path = town.catalog_dir / "sources" / f"{DAILY}.yaml"
    declared = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**declared, "retention": {"raw": "1000d"}}), encoding="utf-8")
    with open_lake(town) as keeper:
        kept = retire(keeper)
        assert {one.table for one in kept} == {"raw.tasks", "raw.entries", "raw.fetches"}
        yield keeper


def test_a_deleted_index_comes_back_as_it_was(lived_in: Lake) -> None:
    before, waiting = index_of(lived_in), rows_of(lived_in, task, set())
    states = states_of(lived_in)
    wanted = {PartitionState.COMPLETE, PartitionState.EMPTY, PartitionState.FAILED, PartitionState.RETIRED}
    assert wanted <= set(states.values())
    forget_index(lived_in)
    assert PartitionIndex(lived_in.ledger).list() == []
    done = rebuild(lived_in)
    after = index_of(lived_in)
    assert done.partitions == len(before["partition_info"]) > 20
    assert after["batch"] == before["batch"] != []
    for found, expected in zip(after["partition_info"], before["partition_info"], strict=True):
        assert found == expected
    assert rows_of(lived_in, task, set()) == waiting != []
    assert rebuild(lived_in) == done
    assert index_of(lived_in) == before


def test_a_rolled_back_day_is_told_again_too(lived_in: Lake) -> None:
    day, root = letters("2025-03-01"), lived_in.settings.catalog_dir
    template, source = root / "templates" / DAILY / "v2.yaml", root / "sources" / f"{DAILY}.yaml"
    declared = yaml.safe_load(template.with_name("v1.yaml").read_text(encoding="utf-8"))
    fields = {name: field for name, field in declared["fields"].items() if name != "author"}
    template.write_text(yaml.safe_dump({**declared, "version": 2, "fields": fields}), encoding="utf-8")
    earlier = source.read_text(encoding="utf-8")
    source.write_text(yaml.safe_dump({**yaml.safe_load(earlier), "template": f"{DAILY}@2"}), encoding="utf-8")
    with open_lake(lived_in.settings) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="no authors", who="ann")
        for move in (roll_back, redo, roll_back):
            assert move(lake, fix.fix_id, reason="to and fro", who="ann")
            before = index_of(lake)
            rebuild(lake)
            assert index_of(lake) == before
            assert states_of(lake)["feature.articles", f"{DAILY}|{day.dt}"] is PartitionState.COMPLETE
    source.write_text(earlier, encoding="utf-8")


def test_a_rebuilt_index_makes_no_work(lived_in: Lake) -> None:
    names = sorted(lived_in.iceberg.locations())
    before = {name: lived_in.committer.table(name).metadata.current_snapshot_id for name in names}
    forget_index(lived_in)
    rebuild(lived_in)
    assert BatchIndex(lived_in.ledger).uploaded() == []
    for materialize in LAYERS:
        materialize(lived_in, [letters("2025-03-01"), letters(QUIET_DAY)])
    assert {name: lived_in.committer.table(name).metadata.current_snapshot_id for name in names} == before


def test_rows_that_came_after_the_mark_leave_the_day_open(lived_in: Lake) -> None:
    day = letters("2025-03-02")
    mark = newest_marks(lived_in)[day]
    assert (mark.state, mark.rows["fetches"]) == (PartitionState.COMPLETE, 5)
    fetches = lived_in.committer.scan("raw.fetches")
    late = fetches.slice(0, 1).to_pylist()[0] | {"source": day.source, "dt": day.dt, "batch_id": "f" * 32}
    late |= {"fetch_id": "late"}
    lived_in.committer.append("raw.fetches", to_arrow([late], lived_in.catalog.table_schema("raw.fetches")))
    rebuild(lived_in)
    states = states_of(lived_in)
    assert states["raw.fetches", f"{DAILY}|{day.dt}"] is PartitionState.OPEN
    assert states["clean.articles", f"{DAILY}|{day.dt}"] is PartitionState.OPEN
    assert states["feature.articles", f"{DAILY}|{day.dt}"] is PartitionState.OPEN
    assert states["clean.articles", f"{DAILY}|2025-03-01"] is PartitionState.COMPLETE


def test_features_of_other_rows_are_open(lived_in: Lake) -> None:
    day = letters("2025-03-03")
    partition = next(
        info.partition for info in PartitionIndex(lived_in.ledger).list(Layer.CLEAN, "clean.articles", DAILY, day.dt)
    )
    frame = lived_in.committer.scan("clean.articles", [partition])
    lived_in.committer.replace("clean.articles", frame.slice(1), [partition])
    rebuild(lived_in)
    states = states_of(lived_in)
    assert states["clean.articles", f"{DAILY}|{day.dt}"] is PartitionState.OPEN, "its books do not balance"
    assert states["feature.articles", f"{DAILY}|{day.dt}"] is PartitionState.OPEN


KILLED = """
import os, signal
import sqlalchemy as sa
from lakehouse.cli import main
def kill(connection, cursor, statement, *_):
    if statement.startswith("INSERT INTO batch"):
        os.kill(os.getpid(), signal.SIGKILL)
sa.event.listen(sa.Engine, "before_cursor_execute", kill)
main(["rebuild"])
"""


def test_a_rebuild_that_is_killed_leaves_the_old_index(lived_in: Lake) -> None:
    rebuild(lived_in)
    before = index_of(lived_in)
    with lived_in.ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(partition_info.c.layer == "feature"))
    broken = index_of(lived_in)
    settings = lived_in.settings
    env = {**os.environ, "LAKEHOUSE_HOME": str(settings.home), "LAKEHOUSE_CATALOG_DIR": str(settings.catalog_dir)}
    done = subprocess.run([sys.executable, "-c", KILLED], env=env, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert index_of(lived_in) == broken
    command = [str(Path(sys.executable).parent / "lakehouse"), "rebuild", "--json"]
    again = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert json.loads(again.stdout)["partitions"] == len(before["partition_info"]), again.stderr
    assert index_of(lived_in) == before
