"""Commands that change history, killed at each commit in turn: the same command finishes, and nothing doubles.

A command that is given again does the next commit and dies after it (or before the one after it), until it has nothing
left to do: so it dies once at every step, each time upon what the kills before left.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import structlog

from lakehouse.clock import system_now
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.fix_units import apply_fixes, roll_back
from lakehouse.materialize.versions import moves_of, set_version
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.settings import Settings
from lakehouse.tables.content import content_hash
from lakehouse.tables.effective import current, decided_pointers
from lakehouse.tables.fixes import Code, Fix, Status, all_fixes
from lakehouse.tables.upkeep import Limits, upkeep
from tests.fix_worker import POINTS, run_until
from tests.letters import SOURCE, TABLES, authors, authors_now, hashes, lake_with, letters, publish
from tests.unit.tables.upkeep_lake import needed_files, stored_files

STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))
points = pytest.mark.parametrize("point", POINTS)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site."""
    with letters(tmp_path_factory.mktemp("crashes")) as given:
        yield given
    structlog.reset_defaults()


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
        assert authors(lake, day) == authors_now(lake, day) == {f"文 / {name}" for name in plain}
        assert settled(lake, day) == fix.fix_id
        assert run_through(settings, point, "fix", "apply", "--source", SOURCE, *words) == 0
        assert fixes_of(lake, day) == [fix]


@points
def test_a_fix_of_two_days_by_a_file_killed_at_every_step_is_one_fix(
    settings: Settings, point: str, tmp_path: Path
) -> None:
    first = date(2025, 4, 10 * list(POINTS).index(point) + 1)
    days = [SourceDay(SOURCE, first), SourceDay(SOURCE, first + timedelta(days=1))]
    with lake_with(settings) as lake:
        publish(lake, *days)
        before = [hashes(lake, day) for day in days]
        frame = lake.committer.scan("clean.articles", [Partition(SOURCE, day.dt, 1) for day in days])
        names = [name for name in ("subtitle", "content_hash") if name in frame.column_names]
        pq.write_table(frame.drop_columns(names).slice(1), tmp_path / "rows.parquet")
        words = ("--from", str(days[0].dt), "--to", str(days[1].dt), "--code", "source_error", "--reason", "too many")
        again = ("fix", "apply", "--source", SOURCE, *words, "--rows", str(tmp_path / "rows.parquet"))
        assert run_through(settings, point, *again) >= 8
        fixes = [fix for day in days for fix in fixes_of(lake, day)]
        assert [(fix.day, fix.status, fix.unit) for fix in fixes] == [
            (day, Status.APPLIED, fixes[0].fix_id) for day in days
        ]
        assert [(fix.changes or {})["clean.articles"]["removed"] for fix in fixes] == [1, 0]
        kept = lake.committer.scan("clean.articles", [Partition(SOURCE, day.dt, 1) for day in days])
        assert content_hash(kept) == content_hash(frame.slice(1))
        assert [settled(lake, day) for day in days] == [fix.fix_id for fix in fixes]
        assert run_through(settings, point, *again) == 0
        assert run_through(settings, point, "fix", "rollback", fixes[1].fix_id, "--reason", "no") >= 6
        assert [hashes(lake, day) for day in days] == before
        assert [fix.moves for day in days for fix in fixes_of(lake, day)] == [1, 1]


@points
def test_a_rollback_and_a_redo_killed_at_every_step_are_one_move_each(settings: Settings, point: str) -> None:
    day = day_for(point, 1)
    with lake_with(settings) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, template=2) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="authors", who="ann")
        after, said = hashes(lake, day), authors(lake, day)
        for count, command in enumerate(("rollback", "redo", "rollback"), start=1):
            again = ("fix", command, fix.fix_id, "--reason", f"number {count}", "--who", "bob")
            assert run_through(settings, point, *again) >= 4
            undone = command == "rollback"
            [now] = fixes_of(lake, day)
            assert (now.status, now.moves) == (Status.ROLLED_BACK if undone else Status.APPLIED, count)
            assert hashes(lake, day) == (before if undone else after)
            assert authors_now(lake, day) == (plain if undone else said)
            assert settled(lake, day) == (None if undone else fix.fix_id)
            assert run_through(settings, point, *again) == 0
            assert [one.moves for one in fixes_of(lake, day)] == [count]


@points
def test_a_fix_to_another_schema_version_killed_at_every_step_moves_readers_once(
    settings: Settings, point: str
) -> None:
    day = day_for(point, 6)
    with lake_with(settings) as lake:
        publish(lake, day)
        before = hashes(lake, day)
    with lake_with(settings, template=2, version=2) as lake:
        words = ("--dt", day.dt.isoformat(), "--code", "bug", "--reason", "subtitles", "--who", "ann")
        assert run_through(settings, point, "fix", "apply", "--source", SOURCE, *words) >= 5
        [fix] = fixes_of(lake, day)
        assert fix.structural
        assert authors(lake, day) != authors_now(lake, day)
        assert settled(lake, day) == fix.fix_id
        assert run_through(settings, point, "fix", "rollback", fix.fix_id, "--reason", "no") >= 3
        assert hashes(lake, day) == before
        assert authors(lake, day) == authors_now(lake, day)
        assert current(lake.committer)["articles", SOURCE, day.dt].schema_version == 1
        mine = [move.pointer.schema_version for move in moves_of(lake, SOURCE) if move.pointer.dt == day.dt]
        assert mine == [1, 2, 1]


@points
def test_branches_of_a_fix_killed_at_every_table_are_whole(settings: Settings, point: str) -> None:
    day = day_for(point, 7)
    with lake_with(settings) as lake:
        publish(lake, day)
        plain = authors(lake, day)
    with lake_with(settings, template=2) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="authors", who="ann")
        assert run_through(settings, point, "fix", "branch", fix.fix_id, "--before", "--days", "500") >= 3
        table = lake.iceberg.load_table("clean.articles")
        branch = table.metadata.refs[f"before-fix-{fix.fix_id[:8]}"]
        rows = table.scan(row_filter=f"dt = '{day.dt}'", snapshot_id=branch.snapshot_id).to_arrow()
        assert set(rows["author"].to_pylist()) == plain
        assert run_through(settings, point, "fix", "branch", fix.fix_id, "--before", "--drop") >= 3
        assert set(lake.iceberg.load_table("clean.articles").metadata.refs) == {"main"}


@points
def test_a_rerun_killed_at_every_step_is_one_move(settings: Settings, point: str) -> None:
    day = day_for(point, 2)
    with lake_with(settings) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, template=2) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="authors", who="ann")
        rows = lake.committer.scan("clean.articles", [fix.partition])
        lake.committer.replace("clean.articles", rows.slice(1), [fix.partition])
        again = ("fix", "rollback", fix.fix_id, "--rerun", "--reason", "late pages", "--who", "bob")
        assert run_through(settings, point, *again) >= 4
        [now] = fixes_of(lake, day)
        assert (now.status, now.moves) == (Status.ROLLED_BACK, 1)
        assert hashes(lake, day) == before
        assert authors_now(lake, day) == plain
        assert settled(lake, day) is None


@points
def test_a_rollback_that_died_is_finished_by_a_rerun(settings: Settings, point: str) -> None:
    day = day_for(point, 3)
    with lake_with(settings) as lake:
        publish(lake, day)
        before = hashes(lake, day)
    with lake_with(settings, template=2) as lake:
        [fix] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="authors", who="ann")
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
