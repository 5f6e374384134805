"""The books are checked before anything is committed, and audited as the tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import InvariantError
from lakehouse.materialize.books import RULES, balance, check_books, join_pages
from lakehouse.model.record import CleanDay, Outcome, OutcomeRow

DAY = date(2026, 3, 1)
Entries = Sequence[tuple[str, Outcome, int]]


def cleaned(outcomes: Entries, rows: Sequence[str]) -> CleanDay:
    """A cleaned day with these outcomes, and one row for each fetch id of `rows`."""
    return CleanDay(
        "town",
        DAY,
        tuple({"fetch_id": name} for name in rows),
        (),
        tuple(OutcomeRow(name, outcome, None, count) for name, outcome, count in outcomes),
    )


@given(st.lists(st.tuples(st.sampled_from(list(Outcome)), st.integers(1, 3)), max_size=20))
def test_books_that_balance_pass(parts: list[tuple[Outcome, int]]) -> None:
    entries = [(f"f{n}", outcome, count if outcome is Outcome.CLEAN else 0) for n, (outcome, count) in enumerate(parts)]
    rows = [name for name, _, count in entries for _ in range(count)]
    check_books(cleaned(entries, rows), [name for name, _, _ in entries])
    assert len(rows) == sum(count for _, _, count in entries)


@pytest.mark.parametrize(
    ("outcomes", "rows", "fetches", "wrong"),
    [
        ([], [], ["a"], "1 fetches without an outcome, such as a"),
        ([("a", Outcome.FAILED, 0)], [], [], "1 outcomes without a fetch, such as a"),
        ([], ["a"], [], "1 clean rows without a fetch, such as a"),
        ([("a", Outcome.FAILED, 0), ("a", Outcome.LIMITED, 0)], [], ["a"], "1 fetches with several outcomes"),
        ([("a", Outcome.FAILED, 0)], [], ["a", "a"], "1 fetches that are stored twice"),
        ([("a", Outcome.CLEAN, 1)], [], ["a"], "1 fetches whose clean rows differ from rows_out"),
        ([("a", Outcome.CLEAN, 1)], ["a", "a"], ["a"], "1 fetches whose clean rows differ from rows_out"),
        ([("a", Outcome.REJECTED, 1)], ["a"], ["a"], "1 fetches whose outcome does not fit their rows_out"),
        ([("a", Outcome.CLEAN, 0)], [], ["a"], "1 fetches whose outcome does not fit their rows_out"),
        (
            [("a", Outcome.CLEAN, 1), ("b", Outcome.CLEAN, 1)],
            ["a", "a"],
            ["a", "b"],
            "2 fetches whose clean rows differ",
        ),
    ],
)
def test_every_imbalance_is_named(outcomes: Entries, rows: list[str], fetches: list[str], wrong: str) -> None:
    with pytest.raises(InvariantError, match="books of town") as caught:
        check_books(cleaned(outcomes, rows), fetches)
    assert wrong in str(caught.value)
    assert "nothing was committed" in str(caught.value)


def test_one_day_out_of_balance_leaves_the_others_balanced() -> None:
    def frame(rows: list[dict[str, Any]], **more: Any) -> pl.DataFrame:
        return pl.DataFrame(rows, schema={"source": pl.String, "dt": pl.Date, "fetch_id": pl.String, **more})

    good, bad = {"source": "town", "dt": DAY}, {"source": "village", "dt": DAY}
    fetches = frame([{**good, "fetch_id": "a"}, {**bad, "fetch_id": "a"}])
    outcomes = frame(
        [{**good, "fetch_id": "a", "outcome": "clean", "rows_out": 1}], outcome=pl.String, rows_out=pl.Int64
    )
    town, village = balance(join_pages(fetches, outcomes, frame([{**good, "fetch_id": "a"}])))
    assert (town.balanced, town.outcomes, town.rows, town.cleaned) == (True, {"clean": 1}, 1, True)
    assert (village.balanced, village.cleaned) == (False, False)
    assert village.problems == ("village|2026-03-01: 1 fetches without an outcome, such as a",)


def test_a_day_without_anything_has_no_books() -> None:
    check_books(cleaned([], []), [])
    assert len(RULES) == 7
