"""Rows that do not fit the schema become rejects, and the books follow."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from lakehouse.materialize.books import check_books
from lakehouse.materialize.frames import fit_day, outcome_row, raw_row, reject_row
from lakehouse.model.fetch import Fetch, FetchKind
from lakehouse.model.partition import Partition
from lakehouse.model.record import Action, CleanDay, Outcome, OutcomeRow, Reject
from lakehouse.specs.loader import Catalog, load_catalog
from lakehouse.tables.normalize import to_arrow

DAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 4, tzinfo=UTC)
PARTITION = Partition("town", DAY, 1)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The project's own schemas."""
    return load_catalog(Path(__file__).parents[3] / "catalog")


def article(fetch_id: str, **changed: Any) -> dict[str, Any]:
    """A row of `clean.articles` that fits."""
    return {
        "source": "town",
        "dt": DAY,
        "schema_version": 1,
        "url": f"http://town.example/{fetch_id}",
        "url_fp": "a" * 32,
        "canonical_fp": "b" * 32,
        "url_rules_version": 1,
        "content_hash": "c" * 32,
        "title": "The bridge",
        "publish_time": NOON,
        "time_confidence": 2,
        "author": None,
        "origin": None,
        "body": "The bridge is open.",
        "body_chars": 16,
        "body_quality": 0.5,
        "paragraphs": 1,
        "language": "en",
        "tags": [],
        "flags": [],
        "fetch_id": fetch_id,
        "task_id": "t" * 32,
        "template": "generic",
        "template_version": 1,
        "collect_time": NOON,
        "snap_key": "snap/town/x.zst",
        **changed,
    }


def cleaned(*rows: dict[str, Any], rows_out: int = 1) -> CleanDay:
    """A cleaned day whose fetches gave these rows."""
    ids = sorted({row["fetch_id"] for row in rows})
    return CleanDay("town", DAY, rows, (), tuple(OutcomeRow(name, Outcome.CLEAN, None, rows_out) for name in ids))


def test_rows_that_fit_stay_as_they_are(catalog: Catalog) -> None:
    day = cleaned(article("a"), article("b"))
    fitted = fit_day(day, catalog.schema("articles", 1))
    assert fitted.day == day
    assert fitted.frame.num_rows == 2


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"body_quality": float("nan")}, "body_quality"),
        ({"time_confidence": 9}, "time_confidence"),
        ({"body_chars": 2**40}, "body_chars"),
        ({"title": "a\x00b"}, "title"),
        ({"title": "half \ud800"}, "title"),
        ({"publish_time": "yesterday"}, "publish_time"),
        ({"publish_time": datetime(2026, 3, 1)}, "publish_time"),  # noqa: DTZ001 - a naive time is the point
        ({"surprise": "an undeclared field"}, "surprise"),
    ],
)
def test_a_value_that_does_not_fit_is_a_reject_and_not_a_crash(
    catalog: Catalog, changed: dict[str, Any], named: str
) -> None:
    fitted = fit_day(cleaned(article("a"), article("b", **changed)), catalog.schema("articles", 1))
    [reject] = fitted.day.rejects
    assert (reject.fetch_id, reject.stage, reject.reason) == ("b", "schema", "value_misfit")
    assert named in reject.detail
    assert fitted.frame["fetch_id"].to_pylist() == ["a"]
    assert [(row.outcome, row.rows_out) for row in fitted.day.outcomes] == [(Outcome.CLEAN, 1), (Outcome.REJECTED, 0)]
    check_books(fitted.day, ["a", "b"])
    stored = to_arrow([reject_row(reject, PARTITION)], catalog.schema("rejects"))
    assert json.loads(stored["row"][0].as_py())["fetch_id"] == "b"


def test_a_fetch_that_keeps_some_of_its_rows_stays_clean(catalog: Catalog) -> None:
    rows = [article("a"), article("a", title="a\x00b"), article("a", title="third")]
    fitted = fit_day(cleaned(*rows, rows_out=3), catalog.schema("articles", 1))
    assert fitted.day.outcomes == (OutcomeRow("a", Outcome.CLEAN, None, 2),)
    assert (fitted.frame.num_rows, len(fitted.day.rejects)) == (2, 1)
    check_books(fitted.day, ["a"])


def test_rejects_with_text_that_no_column_takes_are_stored(catalog: Catalog) -> None:
    row = {"title": "a\x00b\ud800", "when": NOON, "number": float("inf"), "list": ["\udfff"]}
    reject = Reject("parse", Action.REJECT, "unreadable", "why\x00", row, "f", "u", "t", "generic", 1, NOON, None)
    stored = to_arrow([reject_row(reject, PARTITION)], catalog.schema("rejects")).to_pylist()[0]
    assert json.loads(stored["row"])["title"] == "a\\x00b\\ud800"
    assert (stored["action"], stored["schema_version"], stored["detail"]) == ("reject", 1, "why\\x00")


def test_model_rows_have_the_columns_of_their_tables(catalog: Catalog) -> None:
    fetch = Fetch(
        "f", "town", DAY, "t", "w", FetchKind.DETAIL, "http", "http://a", "http://a", "u", 1, NOON, redirects=("x",)
    )
    raw = to_arrow([raw_row(fetch, "batch", 1)], catalog.schema("fetches")).to_pylist()[0]
    assert (raw["batch_id"], raw["kind"], raw["redirects"], raw["dt"]) == ("batch", "detail", ["x"], DAY)
    outcome = outcome_row(OutcomeRow("f", Outcome.LIMITED, "captcha", 0), PARTITION)
    assert to_arrow([outcome], catalog.schema("outcomes")).to_pylist()[0]["outcome"] == "limited"
