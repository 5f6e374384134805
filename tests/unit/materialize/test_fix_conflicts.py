"""Fixes beside another client of the catalog: its rows are never lost, its deletes never undone, its haste survived."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakehouse.errors import ConflictError
from lakehouse.lake import Lake
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.settings import Settings
from lakehouse.tables.fix_branches import branch_fix
from lakehouse.tables.fixes import Code, Fix, Status, all_fixes
from lakehouse.tables.iceberg import LakehouseCatalog
from tests.letters import SOURCE, authors, hashes, lake_with, letters, publish
from tests.unit.tables.other_engine import add_position_delete

WORDS: dict[str, Any] = {"code": Code.TEMPLATE, "reason": "authors were missing their words", "who": "ann"}
UNDO: dict[str, Any] = {"reason": "it was right before", "who": "bob"}
ARTICLES = "clean.articles"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site."""
    with letters(tmp_path_factory.mktemp("conflicts")) as given:
        yield given


def fixes_of(lake: Lake, day: SourceDay) -> list[Fix]:
    return [fix for fix in all_fixes(lake.decisions) if fix.day == day]


def other_client(lake: Lake) -> Table:
    """The table of records as plain PyIceberg opens it from the same catalog, which knows no locks of ours."""
    return SqlCatalog(lake.iceberg.name, **lake.iceberg.properties).load_table(ARTICLES)


def add_row(lake: Lake, day: SourceDay) -> None:
    """Another client appends a row to a day."""
    table = other_client(lake)
    row = table.scan(row_filter=f"dt = '{day.dt}'").to_arrow().slice(0, 1)
    table.append(row)
    assert isinstance(table.catalog, SqlCatalog)
    table.catalog.engine.dispose()


def delete_row(lake: Lake, day: SourceDay) -> None:
    """Another engine deletes the first row of a day by a delete file."""
    table = lake.iceberg.load_table(ARTICLES)
    [task, *_] = table.scan(row_filter=f"dt = '{day.dt}'").plan_files()
    add_position_delete(table, task.file)


def test_rows_of_another_client_are_kept(settings: Settings) -> None:
    day, other = SourceDay(SOURCE, date(2025, 2, 1)), SourceDay(SOURCE, date(2025, 2, 2))
    with lake_with(settings) as lake:
        publish(lake, day, other)
    with lake_with(settings, template=2) as lake:
        [fix] = apply_fixes(lake, [day], **WORDS)
        rows = len(lake.committer.scan(ARTICLES, [fix.partition]))
        add_row(lake, other)
        roll_back(lake, fix.fix_id, **UNDO)
        assert len(lake.committer.scan(ARTICLES, [Partition(SOURCE, other.dt, 1)])) == rows + 1
        redo(lake, fix.fix_id, **UNDO)
        add_row(lake, day)
        for refused in (roll_back, redo):
            with pytest.raises(ConflictError, match=f"{ARTICLES} of demo_daily.2025-02-01 has changed since"):
                refused(lake, fix.fix_id, **UNDO)
        assert len(lake.committer.scan(ARTICLES, [fix.partition])) == rows + 1
        assert [one.moves for one in fixes_of(lake, day)] == [2]
        roll_back(lake, fix.fix_id, rerun=True, **UNDO)
        assert audit_books(lake, [day]).balanced


def test_another_client_that_commits_first_makes_a_fix_plan_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, other = SourceDay(SOURCE, date(2025, 2, 3)), SourceDay(SOURCE, date(2025, 2, 4))
    with lake_with(settings) as lake:
        publish(lake, day, other)
        before, rows = hashes(lake, day), len(lake.committer.scan(ARTICLES, [Partition(SOURCE, other.dt, 1)]))
    swap = LakehouseCatalog.commit_table
    with lake_with(settings, template=2) as lake:

        def commit(self: LakehouseCatalog, table: Table, *rest: Any) -> Any:
            if table.name() == tuple(ARTICLES.split(".")):
                monkeypatch.undo()
                add_row(lake, other)
            return swap(self, table, *rest)

        for step in ("apply", "rollback"):
            monkeypatch.setattr(LakehouseCatalog, "commit_table", commit)
            if step == "apply":
                [fix] = apply_fixes(lake, [day], **WORDS)
                assert all("文 / " in name for name in authors(lake, day))
            else:
                roll_back(lake, fix.fix_id, **UNDO)
        assert hashes(lake, day) == before
        assert len(lake.committer.scan(ARTICLES, [Partition(SOURCE, other.dt, 1)])) == rows + 2


def test_a_day_that_carries_deletes_of_another_engine_is_left_alone(settings: Settings) -> None:
    day, late = SourceDay(SOURCE, date(2025, 2, 5)), SourceDay(SOURCE, date(2025, 2, 6))
    with lake_with(settings) as lake:
        publish(lake, day, late)
        delete_row(lake, day)
    with lake_with(settings, template=2) as lake:
        with pytest.raises(ConflictError, match="carries delete files"):
            apply_fixes(lake, [day], **WORDS)
        assert fixes_of(lake, day) == []
        [fix] = apply_fixes(lake, [late], **WORDS)
        delete_row(lake, late)
        snapshot = lake.committer.table(ARTICLES).metadata.current_snapshot_id
        for refused in (
            lambda: roll_back(lake, fix.fix_id, **UNDO),
            lambda: roll_back(lake, fix.fix_id, rerun=True, **UNDO),
            lambda: redo(lake, fix.fix_id, **UNDO),
            lambda: branch_fix(lake.committer, all_fixes(lake.decisions), fix),
            lambda: apply_fixes(lake, [late], code=Code.BUG, reason="other words", who="ann"),
        ):
            with pytest.raises(ConflictError, match="carries delete files"):
                refused()
        assert [(one.status, one.moves) for one in fixes_of(lake, late)] == [(Status.APPLIED, 0)]
        assert lake.committer.table(ARTICLES).metadata.current_snapshot_id == snapshot
