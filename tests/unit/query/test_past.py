"""Tables as they were at a tag or a time, and with the days of a fix before and after it, in SQL and Polars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from lakehouse.cli import main
from lakehouse.clock import system_now
from lakehouse.errors import ConfigError, UnknownNameError
from lakehouse.lake import Lake
from lakehouse.materialize.fix_units import apply_fixes, roll_back
from lakehouse.model.partition import SourceDay
from lakehouse.query.locations import read_locations
from lakehouse.query.past import connect_at
from lakehouse.settings import Settings
from lakehouse.tables.fixes import Code, Fix
from lakehouse.tables.tags import tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.letters import SOURCE, lake_with, letters, publish

DAYS = [SourceDay(SOURCE, date(2025, 2, 1)), SourceDay(SOURCE, date(2025, 2, 2))]
LATER = SourceDay(SOURCE, date(2025, 2, 3))
WORDS: dict[str, Any] = {"reason": "authors were missing their words", "who": "ann"}
VIEWS = ("clean.articles", "clean.articles_effective", "clean.articles_latest", "clean.articles_compat")


@dataclass
class Story:
    """A lake in which two days were fixed, given back, and made in another schema version; and when it began."""

    settings: Settings
    lake: Lake
    moment: str
    fix: Fix
    structural: Fix


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with letters(tmp_path_factory.mktemp("past")) as settings:
        with lake_with(settings) as lake:
            publish(lake, *DAYS)
            for name in ("clean.articles", "meta.effective"):
                tag_release(lake.committer, name, "first")
            moment = system_now().isoformat()
        with lake_with(settings, template=2) as lake:
            fix, *_ = apply_fixes(lake, DAYS, code=Code.TEMPLATE, **WORDS)
            publish(lake, LATER)
            roll_back(lake, fix.fix_id, reason="no", who="bob")
        with lake_with(settings, template=2, version=2) as lake:
            [structural] = apply_fixes(lake, DAYS[:1], code=Code.BUG, **WORDS)
            yield Story(settings, lake, moment, fix, structural)


def seen(lake: Lake, point: str, view: str) -> dict[str, bool]:
    """The days that a view shows at a point, and whether all authors there have their words."""
    query = f"SELECT CAST(dt AS VARCHAR), bool_and(starts_with(author, '文 / ')) FROM {view} GROUP BY dt"
    with connect_at(lake, point) as db:
        return dict(db.execute(query).fetchall())


@pytest.mark.parametrize("view", VIEWS)
def test_a_tag_and_a_time_show_everything_as_it_was(story: Story, view: str) -> None:
    wanted = {str(day.dt): False for day in DAYS}
    assert seen(story.lake, "tag:release-first", view) == wanted
    assert seen(story.lake, story.moment, view) == wanted


@pytest.mark.parametrize("view", VIEWS[1:3])
def test_a_fix_shows_its_days_before_and_after_it_and_the_others_as_they_are(story: Story, view: str) -> None:
    first, second, later = (str(day.dt) for day in (*DAYS, LATER))
    assert seen(story.lake, f"fix:{story.fix.fix_id}", view) == {first: True, second: True, later: True}
    assert seen(story.lake, f"before-fix:{story.fix.fix_id[:9]}", view) == {first: False, second: False, later: True}
    assert seen(story.lake, f"fix:{story.structural.fix_id}", view) == {first: True, second: False, later: True}
    assert seen(story.lake, f"before-fix:{story.structural.fix_id}", view) == {first: False, second: False, later: True}


def test_a_fix_shows_the_schema_version_that_readers_got(story: Story) -> None:
    query = f"SELECT DISTINCT schema_version FROM clean.articles_effective WHERE dt = '{DAYS[0].dt}'"
    for point, version in ((f"before-fix:{story.structural.fix_id}", 1), (f"fix:{story.structural.fix_id}", 2)):
        with connect_at(story.lake, point) as db:
            assert db.execute(query).fetchall() == [(version,)]


def test_polars_reads_the_past_too(story: Story) -> None:
    with connect_at(story.lake, f"fix:{story.fix.fix_id}") as db:
        frame = db.scan("clean.articles_effective").filter(pl.col("dt") == DAYS[1].dt).select("author").collect()
    assert len(frame) > 0
    assert frame["author"].str.starts_with("文 / ").all()


def test_points_that_cannot_be_read_say_why(story: Story) -> None:
    lake = story.lake
    with pytest.raises(ConfigError, match="names no point"):
        connect_at(lake, "yesterday")
    with pytest.raises(UnknownNameError, match="no fix"):
        connect_at(lake, "fix:0123456789")
    with connect_at(lake, "tag:release-first") as db:
        with pytest.raises(
            UnknownNameError, match=r"raw.entries cannot be read as of tag:release-first: there is no tag"
        ):
            db.execute("SELECT * FROM raw.entries")
        with pytest.raises(UnknownNameError, match="did you mean"):
            db.execute("SELECT * FROM clean.article")
    with connect_at(lake, "1999-01-01") as db, pytest.raises(UnknownNameError, match="it had no rows yet"):
        db.execute("SELECT * FROM clean.articles")


def test_the_command_reads_the_past(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_HOME", str(story.settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(story.settings.catalog_dir))
    query = f"SELECT count(*) AS n FROM clean.articles_effective WHERE dt = '{DAYS[1].dt}' AND author LIKE '文 / %'"

    def count(*words: str) -> int:
        done = CliRunner().invoke(main, ["sql", query, "--json", *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return int(json.loads(done.stdout)["rows"][0]["n"])

    assert count("--as-of", f"fix:{story.fix.fix_id[:8]}") > 0
    assert (
        count("--as-of", f"before-fix:{story.fix.fix_id[:8]}") == count("--as-of", "tag:release-first") == count() == 0
    )


def test_fixes_reach_further_back_than_times(story: Story) -> None:
    """The last test here: it lets everything end that may."""
    lake = story.lake
    tables = list(read_locations(lake.iceberg))
    limits = Limits(keep_untagged=1, orphan_age=timedelta(0))
    upkeep(lake.committer, tables, limits, now=system_now() + timedelta(days=400))
    with connect_at(lake, story.moment) as db, pytest.raises(UnknownNameError, match="or upkeep has expired it"):
        db.execute("SELECT * FROM clean.outcomes")
    assert seen(lake, "tag:release-first", VIEWS[1]) == {str(day.dt): False for day in DAYS}
    assert seen(lake, f"fix:{story.fix.fix_id}", VIEWS[1])[str(DAYS[1].dt)] is True
