"""What reconciling names: nothing in a sound lake, and exactly what was taken away or put wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.cli import main
from lakehouse.errors import UnknownNameError
from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.ledger.tables import batch, partition_info
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.expected import completeness, far_from_history
from lakehouse.materialize.family import ancestors, descendants, find_partition
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.reconcile import Scope, reconcile
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.settings import Settings, load_settings
from lakehouse.tables.effective import Effective, set_effective
from lakehouse.tables.storage import plain_path

ROOT = Path(__file__).parents[3]
SOURCE = "demo_daily"
EVERYTHING = Scope(sample=None)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A lake of one source whose last seven days are complete."""
    with run_site() as site:
        catalog = copy_catalog(ROOT / "catalog", tmp_path / "catalog", site.server_port)
        for path in (catalog / "sources").glob("*.yaml"):
            declared = yaml.safe_load(path.read_text(encoding="utf-8"))
            if path.stem != SOURCE:
                declared["status"] = "disabled"
                path.write_text(yaml.safe_dump(declared), encoding="utf-8")
        made = load_settings(home=tmp_path / "home", catalog_dir=catalog)
        with open_lake(made) as lake:
            today = lake.clock.today()
            days = [SourceDay(SOURCE, today - timedelta(days=number)) for number in range(7, 0, -1)]
            for materialize in (materialize_raw, materialize_clean, materialize_feature):
                materialize(lake, days)
        yield made


@pytest.fixture
def lake(settings: Settings) -> Iterator[Lake]:
    with open_lake(settings) as opened:
        yield opened


def found(lake: Lake, scope: Scope = EVERYTHING) -> list[tuple[str, str]]:
    return [(one.kind.value, one.subject) for one in reconcile(lake, scope)]


def yesterday(lake: Lake) -> Partition:
    return Partition(SOURCE, lake.clock.today() - timedelta(days=1), 1)


def page_of(lake: Lake, partition: Partition) -> tuple[str, Path]:
    row = lake.committer.scan("raw.fetches", [partition]).to_pylist()[-1]
    return row["snap_key"], lake.settings.home / "objects" / row["snap_key"]


def test_exactly_what_was_deleted_is_named(lake: Lake) -> None:
    assert found(lake) == []
    assert found(lake, Scope()) == []
    partition = yesterday(lake)
    (file,) = lake.committer.files("clean.articles", partition)
    Path(plain_path(file.path)).unlink()
    key, _ = page_of(lake, partition)
    for path in lake.settings.home.joinpath("objects").rglob(f"*{Path(key).name}*"):
        path.unlink()
    other = partition.dt - timedelta(days=2)
    with lake.ledger.write() as connection:
        where = (partition_info.c.table_name == "feature.source_daily", partition_info.c.dt == other)
        assert connection.execute(sa.delete(partition_info).where(*where)).rowcount == 1
    lost = f"feature.source_daily/{Partition(SOURCE, other, 1).path}"
    expected = [("file_missing", plain_path(file.path)), ("index_row_missing", lost), ("page_missing", key)]
    assert found(lake) == expected


def test_what_is_safe_is_repaired_and_the_rest_says_what_to_do(
    lake: Lake, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(settings.catalog_dir))
    with lake.ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(partition_info.c.layer == "clean"))
        connection.execute(sa.update(partition_info).values(row_count=99).where(partition_info.c.layer == "feature"))
        connection.execute(sa.delete(batch))
        stray = {"table_name": "raw.entries", "source": "nobody"}
        one = connection.execute(sa.select(partition_info).limit(1)).mappings().one()
        connection.execute(sa.insert(partition_info).values(**{**one, **stray}))
    kinds = {kind for kind, _ in found(lake)}
    assert kinds == {"index_row_missing", "index_row_wrong", "index_row_stray", "batch_missing"}
    done = CliRunner().invoke(main, ["reconcile", "--all", "--repair", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["found"] == report["repaired"] > 4
    assert all(one["meaning"] and one["remedy"] for one in report["findings"])
    again = CliRunner().invoke(main, ["reconcile", "--all"])
    assert (again.exit_code, again.stdout) == (0, "catalog, ledger, tables and objects say the same\n")


def test_pointers_books_marks_and_strangers_are_named(lake: Lake) -> None:
    partition = yesterday(lake)
    nothing = Effective("articles", SOURCE, partition.dt, 7)
    set_effective(lake.committer, lake.decisions, [nothing], reason="wrong", who="ann")
    frame = lake.committer.scan("clean.articles", [partition])
    lake.committer.replace("clean.articles", frame.slice(1), [partition])
    table = lake.committer.table("clean.rejects")
    stranger = Path(plain_path(table.location())) / "data" / "stranger.parquet"
    stranger.parent.mkdir(parents=True, exist_ok=True)
    stranger.write_bytes(b"x")
    os.utime(stranger, (0, 0))
    Path(plain_path(table.location()), "metadata", "CURRENT").unlink()
    names = dict(found(lake))
    assert names["pointer_to_nothing"] == f"articles/{Partition(SOURCE, partition.dt, 7).path}"
    assert names["books_unbalanced"] == f"{SOURCE}|{partition.dt}"
    assert names["file_unknown"] == str(stranger)
    assert "index_row_wrong" in names


def test_days_that_the_schedule_asked_for_are_missed(lake: Lake, settings: Settings) -> None:
    (one,) = completeness(lake)
    assert (one.source, one.complete, len(one.ended)) == (SOURCE, True, 7)
    gone = yesterday(lake)
    with lake.ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(partition_info.c.dt == gone.dt))
        open_day = gone.dt - timedelta(days=1)
        update = sa.update(partition_info).values(state="open")
        connection.execute(update.where(partition_info.c.dt == open_day))
    path = settings.catalog_dir / "sources" / "demo_news.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("disabled", "enabled"), encoding="utf-8")
    with open_lake(settings) as fresh:
        daily, news = completeness(fresh)
        assert (daily.missing, daily.unfinished) == ((gone.dt,), (open_day,))
        assert (news.source, news.first, news.due) == ("demo_news", None, ())
        named = [one for one in found(fresh) if one[0] in {"day_missing", "day_unfinished", "source_silent"}]
        assert named == [
            ("day_missing", f"{SOURCE}|{gone.dt}"),
            ("day_unfinished", f"{SOURCE}|{open_day}"),
            ("source_silent", "demo_news"),
        ]


def test_lineage_leads_from_features_to_raw_and_back(lake: Lake) -> None:
    path = yesterday(lake).path
    up = ancestors(lake, f"feature.articles/{path}")
    assert up == [f"clean.articles/{path}", f"raw.fetches/{path}", f"raw.entries/{path}"]
    down = descendants(lake, f"raw.fetches/{path}")
    assert set(down) == {
        *(f"clean.{name}/{path}" for name in ("articles", "outcomes", "rejects")),
        *(f"feature.{name}/{path}" for name in ("articles", "source_daily")),
    }
    assert find_partition(lake, f"clean.articles/{path}") == f"clean.articles/{path}"
    with pytest.raises(UnknownNameError, match="the index has no partition"):
        find_partition(lake, "clean.articles/source=nobody/dt=2025-01-01/schema_version=1")


def history(*rows: int) -> dict[date, PartitionInfo]:
    first = date(2025, 1, 1)
    days = [first + timedelta(days=number) for number in range(len(rows))]
    return {
        day: PartitionInfo(
            Layer.RAW,
            "raw.fetches",
            "fetches",
            Partition("x", day, 1),
            "",
            1,
            count,
            count * 1000,
            PartitionState.COMPLETE,
        )
        for day, count in zip(days, rows, strict=True)
    }


@pytest.mark.parametrize(
    ("rows", "far"),
    [
        ((100, 101, 99, 100, 102, 98, 100, 10), True),
        ((100, 101, 99, 100, 102, 98, 100, 130), False),
        ((100, 101, 99, 100, 102, 98, 100, 300), True),
        ((100, 101, 99, 100, 102, 98, 10), False),
        ((2, 0, 1, 2, 0, 1, 2, 6), False),
        ((5, 200, 30, 90, 10, 150, 60, 300), False),
    ],
)
def test_a_day_far_from_its_own_history_is_flagged_after_a_week(rows: tuple[int, ...], far: bool) -> None:
    infos = history(*rows)
    last = max(infos)
    told = far_from_history(infos, [last])
    assert bool(told) is far
    if far:
        assert f"{last}: {rows[-1]} rows, usually 100" in told


def test_the_index_is_asked_with_its_own_key(lake: Lake) -> None:
    assert PartitionIndex(lake.ledger).get(Layer.CLEAN, "clean.articles", yesterday(lake)) is not None
