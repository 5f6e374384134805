"""A fix says what it changed, is rolled back without loss, and stays rolled back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from lakehouse.cli import main
from lakehouse.clock import system_now
from lakehouse.errors import ConflictError, DataError, UnknownNameError
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.model.partition import Partition, PartitionState, SourceDay
from lakehouse.settings import Settings
from lakehouse.tables.effective import current
from lakehouse.tables.fixes import Code, Fix, Status
from lakehouse.tables.tags import tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.letters import SOURCE, TABLES, authors, authors_now, hashes, lake_with, letters, publish

WORDS: dict[str, Any] = {"code": Code.TEMPLATE, "reason": "authors were missing their words", "who": "ann"}
UNDO: dict[str, Any] = {"reason": "it was right before", "who": "bob"}
STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site."""
    with letters(tmp_path_factory.mktemp("fixes")) as given:
        yield given


def apply_fix(lake: Lake, day: SourceDay, **words: Any) -> Fix:
    [fix] = apply_fixes(lake, [day], **words)
    return fix


def test_a_fix_records_what_it_changed_and_readers_get_the_new_rows(settings: Settings) -> None:
    day, other = SourceDay(SOURCE, date(2025, 2, 1)), SourceDay(SOURCE, date(2025, 2, 2))
    with lake_with(settings, 1) as lake:
        publish(lake, day, other)
        before, apart = hashes(lake, day), hashes(lake, other)
        plain = authors(lake, day)
    with lake_with(settings, 2) as lake:
        fix = apply_fix(lake, day, **WORDS)
        assert (fix.status, fix.code, fix.reason, fix.who) == (Status.APPLIED, "template", WORDS["reason"], "ann")
        assert fix.template == "demo_daily@1"
        assert authors(lake, day) == authors_now(lake, day) == {f"文 / {name}" for name in plain}
        assert hashes(lake, other) == apart
        assert fix.changes is not None
        rows = lake.committer.scan("clean.articles", [fix.partition]).num_rows
        counted = fix.changes["clean.articles"]
        assert (counted["added"], counted["removed"], counted["changed"]) == (0, 0, rows)
        assert counted["columns"]["author"] == rows
        assert set(counted["columns"]) - {"content_hash"} == {"author", "template", "template_version"}
        assert fix.changes["clean.outcomes"] == {"added": 0, "removed": 0, "changed": 0, "columns": {}}
        pointer = current(lake.committer)["articles", SOURCE, day.dt]
        assert (pointer.schema_version, pointer.fix_id) == (1, fix.fix_id)
        assert {table: state.checksum for table, state in fix.before.items()} == before
        assert audit_books(lake, [day]).balanced


def test_a_rollback_loses_nothing_even_after_the_strictest_upkeep(settings: Settings) -> None:
    day, other = SourceDay(SOURCE, date(2025, 2, 3)), SourceDay(SOURCE, date(2025, 2, 4))
    with lake_with(settings, 1) as lake:
        publish(lake, day)
        before, plain = hashes(lake, day), authors(lake, day)
    with lake_with(settings, 2) as lake:
        fix = apply_fix(lake, day, **WORDS)
        fixed = hashes(lake, day)
        publish(lake, other)
        later = hashes(lake, other)
        upkeep(lake.committer, TABLES, STRICT, now=system_now() + timedelta(days=400))
        [undone] = roll_back(lake, fix.fix_id[:8], **UNDO)
        assert undone.status is Status.ROLLED_BACK
        assert hashes(lake, day) == before
        assert authors_now(lake, day) == plain
        assert hashes(lake, other) == later
        assert current(lake.committer)["articles", SOURCE, day.dt].fix_id is None
        upkeep(lake.committer, TABLES, STRICT, now=system_now() + timedelta(days=800))
        [again] = redo(lake, fix.fix_id, **UNDO)
        assert again.status is Status.APPLIED
        assert hashes(lake, day) == fixed
        assert [one.moves for one in roll_back(lake, fix.fix_id, **UNDO)] == [3]
        assert hashes(lake, day) == before
        assert audit_books(lake, [day, other]).balanced


def test_what_was_rolled_back_does_not_come_back_with_the_next_run(settings: Settings) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 5))
    with lake_with(settings, 1) as lake:
        publish(lake, day)
        before = hashes(lake, day)
    with lake_with(settings, 2) as lake:
        [fix] = roll_back(lake, apply_fix(lake, day, **WORDS).fix_id, **UNDO)
        [articles, *_] = materialize_clean(lake, [day])
        assert (articles.changed, articles.state) == (False, PartitionState.COMPLETE)
        assert fix.fix_id[:8] in articles.message
        assert hashes(lake, day) == before
        newer = apply_fix(lake, day, code=Code.BUG, reason="now it is right", who="ann")
        assert hashes(lake, day) != before
        with pytest.raises(ConflictError, match=f"{newer.fix_id[:8]} came after"):
            redo(lake, fix.fix_id, **UNDO)
        with pytest.raises(ConflictError, match=f"{newer.fix_id[:8]} came after"):
            roll_back(lake, fix.fix_id, **UNDO)
        roll_back(lake, newer.fix_id, **UNDO)
        assert hashes(lake, day) == before


def test_rows_that_came_after_a_fix_are_not_rolled_away(settings: Settings) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 6))
    with lake_with(settings, 1) as lake:
        publish(lake, day)
        plain = authors(lake, day)
    with lake_with(settings, 2) as lake:
        fix = apply_fix(lake, day, **WORDS)
        rows = lake.committer.scan("clean.articles", [fix.partition])
        lake.committer.replace("clean.articles", rows.slice(1), [fix.partition])
        with pytest.raises(ConflictError, match="has changed since; `--rerun`"):
            roll_back(lake, fix.fix_id, **UNDO)
        assert [one.status for one in roll_back(lake, fix.fix_id, rerun=True, **UNDO)] == [Status.ROLLED_BACK]
        assert authors(lake, day) == authors_now(lake, day) == plain
        [articles, *_] = materialize_clean(lake, [day])
        assert authors(lake, day) == plain
        assert articles.row_count == rows.num_rows
        assert audit_books(lake, [day]).balanced


def test_what_cannot_be_fixed_says_why(settings: Settings) -> None:
    with lake_with(settings, 1) as lake:
        with pytest.raises(DataError, match="nothing to fix"):
            apply_fix(lake, SourceDay(SOURCE, date(2024, 1, 1)), **WORDS)
        with pytest.raises(UnknownNameError, match="no_such_source"):
            apply_fix(lake, SourceDay("no_such_source", date(2024, 1, 1)), **WORDS)
        with pytest.raises(UnknownNameError, match="fix list"):
            roll_back(lake, "abcdef12", **UNDO)


def test_the_commands_do_it_all(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 7))
    with lake_with(settings, 1) as lake:
        publish(lake, day)
        before = hashes(lake, day)
    with lake_with(settings, 2):
        pass
    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(settings.catalog_dir))

    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, ["fix", *words, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    chosen = ("--source", SOURCE, "--dt", day.dt.isoformat())
    [fix] = run("apply", *chosen, "--code", "template", "--reason", "authors", "--who", "ann")
    assert (fix["status"], fix["who"], fix["day"]) == ("applied", "ann", day.key)
    short = fix["fix_id"][:10]
    assert fix["fix_id"] in {one["fix_id"] for one in run("list", "--source", SOURCE)}
    assert run("list", "--source", "demo_world") == []
    assert run("show", short)["changes"]["clean.articles"]["columns"]["author"] == fix["rows"]["changed"] > 0
    changed = run("diff", short, "--table", "clean.articles")["clean.articles"]["changed"]
    assert changed
    assert all(new["author"] == f"文 / {old['author']}" for old, new in changed)
    assert {one["name"] for one in run("branch", short)} == {f"fix-{fix['unit'][:8]}"}
    assert "clean.articles" in {one["table"] for one in run("branch", short, "--drop") if one["changed"]}
    dt = ("--dt", day.dt.isoformat())
    assert [one["status"] for one in run("rollback", short, *dt, "--reason", "no")] == ["rolled_back"]
    with open_lake(settings) as lake:
        assert hashes(lake, day) == before
    assert [one["status"] for one in run("redo", short, "--reason", "yes")] == ["applied"]
    for words in (["list"], ["show", short], ["diff", short], ["branch", short]):
        shown = CliRunner().invoke(main, ["fix", *words], catch_exceptions=False)
        assert shown.exit_code == 0
        assert "author" in shown.stdout or "FOR VERSION AS OF" in shown.stdout


def test_any_two_points_of_a_history_are_compared(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 8))
    place = f"{SOURCE}/{day.dt}/1"
    with lake_with(settings, 1) as lake:
        publish(lake, day)
        rows = lake.committer.scan("clean.articles", [Partition(SOURCE, day.dt, 1)]).num_rows
        tag_release(lake.committer, "clean.articles", "before")
        snapshot = lake.committer.table("clean.articles").metadata.current_snapshot_id
        moment = system_now().isoformat()
    with lake_with(settings, 2) as lake:
        fix = apply_fix(lake, day, **WORDS)
    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(settings.catalog_dir))

    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, ["diff", "clean.articles", *words])
        return done if done.exit_code else json.loads(done.stdout)["counts"]

    before = ("tag:release-before", f"snapshot:{snapshot}", moment, f"before-fix:{fix.fix_id[:9]}")
    for point in before:
        counts = run("--partition", place, "--from", point, "--json")
        assert (counts["added"], counts["removed"], counts["changed"]) == (0, 0, rows)
        assert counts["columns"]["author"] == rows
        assert run("--partition", place, "--from", point, "--to", before[0], "--json")["changed"] == 0
    assert run("--partition", place, "--from", f"fix:{fix.fix_id}", "--json")["changed"] == 0
    assert run("--partition", place, "--from", "version:7", "--json")["added"] == rows
    wrong = {
        "tag:none": "no tag",
        "snapshot:1": "not kept any more",
        "1999-01-01": "no rows yet",
        "yesterday": "names no point",
        "fix:0123456789": "no fix",
    }
    for point, words in wrong.items():
        done = run("--partition", place, "--from", point)
        assert (done.exit_code, words in done.stderr) == (2, True), done.output
    assert run("--partition", "demo_daily/1", "--from", "now").exit_code == 2
    other = run("--partition", f"{SOURCE}/{day.dt}/2", "--from", f"fix:{fix.fix_id}")
    assert "says nothing" in other.stderr
