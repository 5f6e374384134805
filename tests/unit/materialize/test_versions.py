"""Readers get one schema version of each day; it moves with a reason and moves back, and data stay as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.cli import main
from lakehouse.errors import ConflictError, DataError
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.fix_units import apply_fixes, roll_back
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import failed_days
from lakehouse.materialize.versions import moves_of, set_version, undo_version
from lakehouse.model.partition import SourceDay
from lakehouse.query import connect
from lakehouse.settings import Settings, load_settings
from lakehouse.tables.effective import rebuild_effective
from lakehouse.tables.fixes import Code

ROOT = Path(__file__).parents[3]
SOURCE = "demo_daily"
WORDS: dict[str, Any] = {"reason": "letters have a subtitle now", "who": "ann"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site, with a second version of the schema that has one more field."""
    folder = tmp_path_factory.mktemp("versions")
    with run_site() as site:
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        second = yaml.safe_load((catalog / "schemas/articles/v1.yaml").read_text(encoding="utf-8"))
        second |= {"version": 2, "changes": "Adds subtitle, which letters have."}
        second["fields"].append({"name": "subtitle", "type": "string", "description": "What stands below the title"})
        (catalog / "schemas/articles/v2.yaml").write_text(yaml.safe_dump(second), encoding="utf-8")
        yield load_settings(home=folder / "home", catalog_dir=catalog)


@contextmanager
def writing(settings: Settings, version: int) -> Iterator[Lake]:
    """The lake, opened while the source writes this version of its dataset."""
    path = settings.catalog_dir / "sources" / f"{SOURCE}.yaml"
    declared = yaml.safe_load(path.read_text(encoding="utf-8")) | {"writes": f"articles@{version}"}
    path.write_text(yaml.safe_dump(declared), encoding="utf-8")
    with open_lake(settings) as lake:
        yield lake


def publish(settings: Settings, day: SourceDay, *versions: int) -> None:
    """Make the partitions of the day in each version."""
    for version in versions:
        with writing(settings, version) as lake:
            for materialize in (materialize_raw, materialize_clean, materialize_feature):
                results = materialize(lake, [day])
                assert failed_days(results) == {}


def versions_read(lake: Lake, day: SourceDay) -> dict[str, set[int]]:
    """The schema versions of a day that readers get, by view."""
    found = {}
    with connect(lake) as db:
        for view in ("articles", "articles_effective", "articles_latest"):
            query = f"SELECT DISTINCT schema_version FROM clean.{view} WHERE source = ? AND dt = ?"
            found[view] = {row[0] for row in db.execute(query, [day.source, day.dt]).fetchall()}
    return found


def expect(lake: Lake, day: SourceDay, effective: int) -> None:
    assert versions_read(lake, day) == {
        "articles": {1, 2},
        "articles_effective": {effective},
        "articles_latest": {effective},
    }
    newest = lake.committer.scan("feature.articles_current").to_pylist()
    assert [row for row in newest if (row["source"], row["dt"]) == (day.source, day.dt)]


def test_a_version_is_effective_until_somebody_moves_it(settings: Settings) -> None:
    day, other = SourceDay(SOURCE, date(2025, 5, 1)), SourceDay(SOURCE, date(2025, 5, 2))
    publish(settings, day, 1, 2)
    publish(settings, other, 1, 2)
    with open_lake(settings) as lake:
        expect(lake, day, 1)
        assert [one.schema_version for one in set_version(lake, [day], 2, **WORDS)] == [2]
        expect(lake, day, 2)
        expect(lake, other, 1)
        assert set_version(lake, [day], 2, **WORDS) == []
        assert [one.schema_version for one in undo_version(lake, [day], **WORDS)] == [1]
        expect(lake, day, 1)
        assert set_version(lake, [day, other], 2, **WORDS) != []
        assert rebuild_effective(lake.committer, lake.decisions) >= 2
        expect(lake, day, 2)
        moves = [move for move in moves_of(lake, SOURCE) if move.pointer.dt == day.dt]
        assert [move.pointer.schema_version for move in moves] == [1, 2, 1, 2]
        assert {move.who for move in moves[1:]} == {"ann"}


def test_what_cannot_be_moved_says_why_and_nothing_moves(settings: Settings) -> None:
    day, old = SourceDay(SOURCE, date(2025, 5, 3)), SourceDay(SOURCE, date(2025, 5, 4))
    publish(settings, day, 1, 2)
    publish(settings, old, 1)
    with open_lake(settings) as lake:
        with pytest.raises(DataError, match=r"no rows of it for demo_daily\|2025-05-04"):
            set_version(lake, [day, old], 2, **WORDS)
        expect(lake, day, 1)
        with pytest.raises(ConflictError, match="nothing to undo"):
            undo_version(lake, [day], **WORDS)


def test_a_structural_fix_moves_readers_and_its_rollback_moves_them_back(settings: Settings) -> None:
    day = SourceDay(SOURCE, date(2025, 5, 5))
    publish(settings, day, 1)
    with writing(settings, 2) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, **WORDS)
        assert fix.structural
        expect(lake, day, 2)
        with pytest.raises(ConflictError, match="fix rollback"):
            undo_version(lake, [day], **WORDS)
        set_version(lake, [day], 1, **WORDS)
        [later] = apply_fixes(lake, [day], code=Code.BUG, reason="other words", who="ann")
        expect(lake, day, 2)
        roll_back(lake, later.fix_id, **WORDS)
        expect(lake, day, 1)


def test_the_commands_show_set_and_undo(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    day = SourceDay(SOURCE, date(2025, 5, 6))
    publish(settings, day, 1, 2)
    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(settings.catalog_dir))

    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, ["effective", *words, "--source", SOURCE, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    chosen = ("--dt", day.dt.isoformat(), "--reason", "a subtitle")
    [moved] = run("set", "--version", "2", *chosen)
    assert (moved["dt"], moved["schema_version"]) == (day.dt.isoformat(), 2)
    assert {one["dt"]: one["schema_version"] for one in run("show")}[day.dt.isoformat()] == 2
    assert [one["schema_version"] for one in run("undo", *chosen)] == [1]
    told = [one for one in run("show", "--history") if one["pointer"]["dt"] == day.dt.isoformat()]
    assert [one["reason"] for one in told] == ["", "a subtitle", "a subtitle"]
    shown = CliRunner().invoke(main, ["effective", "show", "--source", SOURCE, "--history"], catch_exceptions=False)
    assert "a subtitle" in shown.stdout
