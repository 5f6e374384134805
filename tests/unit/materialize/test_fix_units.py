"""The days of one `fix apply` are one fix: finished, rolled back and redone together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from lakehouse.errors import ConflictError, DataError, UnknownNameError
from lakehouse.lake import Lake
from lakehouse.materialize import clean
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.model.partition import SourceDay
from lakehouse.settings import Settings
from lakehouse.tables.effective import current
from lakehouse.tables.fixes import Code, Status, all_fixes
from tests.letters import SOURCE, authors, hashes, lake_with, letters, publish

WORDS: dict[str, Any] = {"code": Code.TEMPLATE, "reason": "authors were missing their words", "who": "ann"}
UNDO: dict[str, Any] = {"reason": "it was right before", "who": "bob"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site."""
    with letters(tmp_path_factory.mktemp("units")) as given:
        yield given


def days_from(first: date, count: int) -> list[SourceDay]:
    return [SourceDay(SOURCE, first + timedelta(days=number)) for number in range(count)]


def test_days_of_one_command_are_rolled_back_and_redone_together(settings: Settings) -> None:
    days = days_from(date(2025, 2, 1), 3)
    with lake_with(settings) as lake:
        publish(lake, *days)
        before = [hashes(lake, day) for day in days]
    with lake_with(settings, template=2) as lake:
        fixes = apply_fixes(lake, days, **WORDS)
        assert [fix.day for fix in fixes] == days
        assert {fix.unit for fix in fixes} == {fixes[0].fix_id}
        after = [hashes(lake, day) for day in days]
        assert apply_fixes(lake, days, **WORDS) == fixes
        undone = roll_back(lake, fixes[1].fix_id, **UNDO)
        assert [fix.status for fix in undone] == [Status.ROLLED_BACK] * 3
        assert [hashes(lake, day) for day in days] == before
        redo(lake, fixes[2].fix_id, **UNDO)
        assert [hashes(lake, day) for day in days] == after
        [alone] = roll_back(lake, fixes[0].fix_id, dt=days[1].dt, **UNDO)
        assert alone.day == days[1]
        assert [hashes(lake, day) for day in days] == [after[0], before[1], after[2]]
        with pytest.raises(UnknownNameError, match="nothing of 2024-01-01"):
            roll_back(lake, fixes[0].fix_id, dt=date(2024, 1, 1), **UNDO)
        [newer] = apply_fixes(lake, [days[1]], **WORDS)
        assert newer.unit == newer.fix_id
        roll_back(lake, fixes[0].fix_id, **UNDO)
        assert [hashes(lake, day) for day in days] == [before[0], after[1], before[2]]
        with pytest.raises(ConflictError, match=f"{newer.fix_id[:8]} came after"):
            roll_back(lake, fixes[0].fix_id, dt=days[1].dt, **UNDO)


def test_one_day_that_cannot_be_rolled_back_keeps_all_days(settings: Settings) -> None:
    days = days_from(date(2025, 2, 5), 2)
    with lake_with(settings) as lake:
        publish(lake, *days)
    with lake_with(settings, template=2) as lake:
        first, second = apply_fixes(lake, days, **WORDS)
        after = [hashes(lake, day) for day in days]
        rows = lake.committer.scan("clean.articles", [first.partition])
        lake.committer.replace("clean.articles", rows.slice(1), [first.partition])
        with pytest.raises(ConflictError, match="has changed since"):
            roll_back(lake, second.fix_id, **UNDO)
        assert hashes(lake, days[1]) == after[1]
        assert {fix.status for fix in all_fixes(lake.decisions) if fix.day in days} == {Status.APPLIED}


def test_a_day_that_fails_leaves_the_days_before_it_done_and_the_same_command_finishes(settings: Settings) -> None:
    days = days_from(date(2025, 2, 10), 4)
    with lake_with(settings) as lake:
        publish(lake, *days[:2], days[3])
        before = [hashes(lake, day) for day in days]
    with lake_with(settings, template=2) as lake:
        with pytest.raises(
            DataError, match=r"2 of 4 days are done \(2025-02-10, 2025-02-11\); the same command"
        ) as told:
            apply_fixes(lake, days, **WORDS)
        assert "demo_daily|2025-02-12 has no clean rows yet" in str(told.value)
        done = [fix for fix in all_fixes(lake.decisions) if fix.day in days]
        assert [(fix.day, fix.status) for fix in done] == [(day, Status.APPLIED) for day in days[:2]]
        assert [hashes(lake, day) for day in days[2:]] == before[2:]
        with pytest.raises(DataError, match="2 of 4 days are done"):
            apply_fixes(lake, days, **WORDS)
        publish(lake, days[2])
        assert [fix.fix_id for fix in apply_fixes(lake, days, **WORDS)[:2]] == [fix.fix_id for fix in done]
        assert {fix.unit for fix in all_fixes(lake.decisions) if fix.day in days} == {done[0].fix_id}
        assert all("文 / " in name for day in days for name in authors(lake, day))
        assert len(roll_back(lake, done[0].fix_id, **UNDO)) == 4
        assert [hashes(lake, day) for day in (*days[:2], days[3])] == [*before[:2], before[3]]
        assert audit_books(lake, days).balanced


def test_a_fix_that_cannot_be_finished_can_be_given_up(settings: Settings) -> None:
    days = days_from(date(2025, 2, 20), 2)
    with lake_with(settings) as lake:
        publish(lake, *days)
        before = [hashes(lake, day) for day in days]
    with lake_with(settings, template=2) as lake, pytest.MonkeyPatch.context() as patch:
        made = clean.clean_raw_day

        def make(lake: Lake, raw: clean.RawDay, *rest: Any) -> Any:
            if raw.day == days[1]:
                raise DataError("a page of that day provokes the parser")
            return made(lake, raw, *rest)

        patch.setattr(clean, "clean_raw_day", make)
        with pytest.raises(DataError, match="1 of 2 days are done"):
            apply_fixes(lake, days, **WORDS)
        with pytest.raises(ConflictError, match=r"--from 2025-02-20 --to 2025-02-21 .* or give it up"):
            apply_fixes(lake, [days[1]], code=Code.BUG, reason="other words", who="ann")
        fixes = [fix for fix in all_fixes(lake.decisions) if fix.day in days]
        assert [fix.status for fix in fixes] == [Status.APPLIED, Status.UNFINISHED]
        with pytest.raises(ConflictError, match="begun and not finished"):
            redo(lake, fixes[1].fix_id, **UNDO)
        assert {fix.status for fix in roll_back(lake, fixes[1].fix_id, **UNDO)} == {Status.ROLLED_BACK}
        assert [hashes(lake, day) for day in days] == before
        assert current(lake.committer)["articles", SOURCE, days[0].dt].fix_id is None
