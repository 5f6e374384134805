"""Commands that change history, killed at each commit in turn: the same command finishes, and nothing doubles.

A command that is given again does the next commit and dies after it (or before the one after it), until it has nothing
left to do: so it dies once at every step, each time upon what the kills before left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest
import structlog
import yaml

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.clock import system_now
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.fixing import apply_fix, roll_back
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import failed_days
from lakehouse.materialize.versions import moves_of, set_version
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.settings import Settings, load_settings
from lakehouse.tables.content import content_hash
from lakehouse.tables.effective import current, decided_pointers
from lakehouse.tables.fixes import Code, Fix, Status, all_fixes
from lakehouse.tables.upkeep import Limits, upkeep
from tests.fix_worker import POINTS, run_until
from tests.unit.tables.upkeep_lake import needed_files, stored_files

ROOT = Path(__file__).parents[2]
SOURCE = "demo_daily"
TABLES = ("clean.articles", "clean.outcomes", "clean.rejects", "feature.articles", "feature.source_daily")
STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))
points = pytest.mark.parametrize("point", POINTS)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site; letters have two templates that differ in the author, and two schema versions."""
    folder = tmp_path_factory.mktemp("crashes")
    with run_site() as site:
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        template = yaml.safe_load((catalog / "templates/demo_daily/v1.yaml").read_text("utf-8"))
        template["version"] = 2
        template["fields"]["author"] |= {"then": ["strip"], "rules": [{"regex": "(文 / [^·<]+?) ·"}]}
        (catalog / "templates/demo_daily/v2.yaml").write_text(yaml.safe_dump(template), "utf-8")
        schema = yaml.safe_load((catalog / "schemas/articles/v1.yaml").read_text("utf-8"))
        schema |= {"version": 2, "changes": "Adds subtitle, which letters have."}
        schema["fields"].append({"name": "subtitle", "type": "string", "description": "What stands below the title"})
        (catalog / "schemas/articles/v2.yaml").write_text(yaml.safe_dump(schema), "utf-8")
        yield load_settings(home=folder / "home", catalog_dir=catalog)
    structlog.reset_defaults()


@contextmanager
def lake_with(settings: Settings, template: int = 1, version: int = 1) -> Iterator[Lake]:
    """The lake, opened while the source uses these versions; commands use them too from then on."""
    path = settings.catalog_dir / "sources" / f"{SOURCE}.yaml"
    declared = yaml.safe_load(path.read_text("utf-8"))
    declared |= {"template": f"demo_daily@{template}", "writes": f"articles@{version}"}
    path.write_text(yaml.safe_dump(declared), "utf-8")
    with open_lake(settings) as lake:
        yield lake


def publish(lake: Lake, day: SourceDay) -> None:
    for materialize in (materialize_raw, materialize_clean, materialize_feature):
        assert failed_days(materialize(lake, [day])) == {}


def hashes(lake: Lake, day: SourceDay) -> dict[str, str]:
    where = [Partition(day.source, day.dt, 1)]
    return {table: content_hash(lake.committer.scan(table, where)) for table in TABLES}


def newest(lake: Lake, day: SourceDay) -> set[str]:
    """The authors of a day by the table of newest revisions."""
    rows = lake.committer.scan("feature.articles_current").to_pylist()
    return {row["author"] for row in rows if (row["source"], row["dt"]) == (day.source, day.dt)}


def authors(lake: Lake, day: SourceDay) -> set[str]:
    found = lake.committer.scan("clean.articles", [Partition(day.source, day.dt, 1)], ["author"])
    return set(found.column("author").to_pylist())


def fixes_of(lake: Lake, day: SourceDay) -> list[Fix]:
    return [fix for fix in all_fixes(lake.decisions) if fix.day == day]


def run_through(settings: Settings, point: str, *arguments: str) -> int:
    """Give a command until it ends by itself; how often it was killed. Each time all that is reachable is there."""
    kills = 0
    while (code := run_until(point, list(arguments), environment_of(settings))) == -9:
        kills += 1
        assert kills < 30, f"{arguments} makes no progress"
        check_reachable(settings)
    assert code == 0
    return kills


def environment_of(settings: Settings) -> dict[str, str]:
    """The variables that make a command use these settings."""
    return {"LAKEHOUSE_HOME": str(settings.home), "LAKEHOUSE_CATALOG_DIR": str(settings.catalog_dir)}


def check_reachable(settings: Settings) -> None:
    """Every file that a table snapshot or a fix needs is there, after the strictest upkeep."""
    with open_lake(settings) as lake:
        upkeep(lake.committer, TABLES, STRICT, now=system_now() + timedelta(days=400))
        kept: set[str] = set()
        for fix in all_fixes(lake.decisions):
            for state in (*fix.before.values(), *(fix.after or {}).values()):
                kept.update(path.removeprefix("file://") for path in state.files)
        for name in TABLES:
            table = lake.iceberg.load_table(name)
            stored = stored_files(table)
            assert needed_files(table) <= stored
            kept -= stored
        assert not kept


def settled(lake: Lake, day: SourceDay) -> str | None:
    """The fix that is effective for a day, by the decisions and by the table alike."""
    key = ("articles", SOURCE, day.dt)
    assert current(lake.committer)[key] == decided_pointers(lake.decisions)[key]
    assert audit_books(lake, [day]).balanced
    return current(lake.committer)[key].fix_id


def day_for(point: str, number: int) -> SourceDay:
    """A day of its own for a test."""
    return SourceDay(SOURCE, date(2025, 3, 2 * number + list(POINTS).index(point) + 1))


@points
def test_a_fix_killed_at_every_step_is_one_fix(settings: Settings, point: str) -> None:
    day = day_for(point, 0)
    with lake_with(settings) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, template=2) as lake:
        words = ("--dt", day.dt.isoformat(), "--code", "template", "--reason", "authors", "--who", "ann")
        assert run_through(settings, point, "fix", "apply", "--source", SOURCE, *words) >= 5
        [fix] = fixes_of(lake, day)
        assert (fix.status, fix.moves) == (Status.APPLIED, 0)
        assert {table: state.checksum for table, state in fix.before.items()} == before
        assert fix.changes is not None
        counted = fix.changes["clean.articles"]
        assert (counted["added"], counted["removed"]) == (0, 0)
        assert (
            counted["changed"]
            == counted["columns"]["author"]
            == len(lake.committer.scan("clean.articles", [fix.partition]))
        )
        assert authors(lake, day) == newest(lake, day) == {f"文 / {name}" for name in plain}
        assert settled(lake, day) == fix.fix_id
        assert run_through(settings, point, "fix", "apply", "--source", SOURCE, *words) == 0
        assert fixes_of(lake, day) == [fix]


@points
def test_a_rollback_and_a_redo_killed_at_every_step_are_one_move_each(settings: Settings, point: str) -> None:
    day = day_for(point, 1)
    with lake_with(settings) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, template=2) as lake:
        fix = apply_fix(lake, day, code=Code.TEMPLATE, reason="authors", who="ann")
        after, said = hashes(lake, day), authors(lake, day)
        for count, command in enumerate(("rollback", "redo", "rollback"), start=1):
            again = ("fix", command, fix.fix_id, "--reason", f"number {count}", "--who", "bob")
            assert run_through(settings, point, *again) >= 4
            undone = command == "rollback"
            [now] = fixes_of(lake, day)
            assert (now.status, now.moves) == (Status.ROLLED_BACK if undone else Status.APPLIED, count)
            assert hashes(lake, day) == (before if undone else after)
            assert newest(lake, day) == (plain if undone else said)
            assert settled(lake, day) == (None if undone else fix.fix_id)
            assert run_through(settings, point, *again) == 0
            assert [one.moves for one in fixes_of(lake, day)] == [count]


@points
def test_a_rerun_killed_at_every_step_is_one_move(settings: Settings, point: str) -> None:
    day = day_for(point, 2)
    with lake_with(settings) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, template=2) as lake:
        fix = apply_fix(lake, day, code=Code.TEMPLATE, reason="authors", who="ann")
        rows = lake.committer.scan("clean.articles", [fix.partition])
        lake.committer.replace("clean.articles", rows.slice(1), [fix.partition])
        again = ("fix", "rollback", fix.fix_id, "--rerun", "--reason", "late pages", "--who", "bob")
        assert run_through(settings, point, *again) >= 4
        [now] = fixes_of(lake, day)
        assert (now.status, now.moves) == (Status.ROLLED_BACK, 1)
        assert hashes(lake, day) == before
        assert newest(lake, day) == plain
        assert settled(lake, day) is None


@points
def test_a_rollback_that_died_is_finished_by_a_rerun(settings: Settings, point: str) -> None:
    day = day_for(point, 3)
    with lake_with(settings) as lake:
        publish(lake, day)
        before = hashes(lake, day)
    with lake_with(settings, template=2) as lake:
        fix = apply_fix(lake, day, code=Code.TEMPLATE, reason="authors", who="ann")
        assert run_until(point, ["fix", "rollback", fix.fix_id, "--reason", "no"], environment_of(settings)) == -9
        assert hashes(lake, day) != before
        roll_back(lake, fix.fix_id, rerun=True, reason="no", who="bob")
        assert hashes(lake, day) == before
        assert settled(lake, day) is None


@points
def test_a_move_and_its_undo_killed_at_every_step_are_one_each(settings: Settings, point: str) -> None:
    day, other = day_for(point, 4), day_for(point, 5)
    for version in (1, 2):
        with lake_with(settings, version=version) as lake:
            publish(lake, day)
            publish(lake, other)
    words = ("--source", SOURCE, "--who", "ann", "--dt", day.dt.isoformat())
    with lake_with(settings, version=2) as lake:
        moves = ("set", "--version", "2"), ("undo",), ("set", "--version", "2"), ("undo",)
        for number, (command, *more) in enumerate(moves):
            again = ("effective", command, *more, *words, "--reason", f"number {number // 2}")
            assert run_through(settings, point, *again) >= 1
            wanted = 2 if command == "set" else 1
            key = ("articles", SOURCE, day.dt)
            assert current(lake.committer)[key] == decided_pointers(lake.decisions)[key]
            assert current(lake.committer)[key].schema_version == wanted
            mine = [move for move in moves_of(lake, SOURCE) if move.pointer.dt == day.dt]
            assert [move.pointer.schema_version for move in mine] == [1, 2, 1, 2, 1][: number + 2]
            assert run_through(settings, point, *again) == 0
            assert len([move for move in moves_of(lake, SOURCE) if move.pointer.dt == day.dt]) == number + 2
        set_version(lake, [other], 2, reason="beside it", who="ann")
        assert current(lake.committer)["articles", SOURCE, other.dt].schema_version == 2
