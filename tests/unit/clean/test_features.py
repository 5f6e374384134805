"""Features of articles, the newest revisions, and the figures of a day, with the columns that are registered."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from lakehouse.clean import article_features, articles_current, source_daily
from lakehouse.specs.loader import load_catalog

CATALOG = load_catalog(Path(__file__).parents[3] / "catalog")
DAY = date(2024, 3, 6)
AT = datetime(2024, 3, 6, 1, tzinfo=UTC)
KEYS = {"source", "dt", "schema_version"}


def columns(table: str) -> set[str]:
    return {field.name for field in CATALOG.table_schema(table, None).fields}


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "source": "paper",
        "dt": DAY,
        "schema_version": 1,
        "url": f"http://paper.example/{number}",
        "url_fp": f"u{number}",
        "canonical_fp": f"c{number}",
        "url_rules_version": 1,
        "content_hash": f"h{number}",
        "title": "老桥 A",
        "publish_time": AT - timedelta(hours=3),
        "time_confidence": 2,
        "author": None,
        "origin": None,
        "body": "一二三，四五。\nTwo words 12!\nTwo words 12!",
        "body_chars": 29,
        "body_quality": 0.5,
        "paragraphs": 3,
        "language": "zh",
        "tags": [],
        "flags": [],
        "fetch_id": f"f{number}",
        "task_id": "t",
        "template": "generic@1",
        "template_version": 1,
        "collect_time": AT,
        "snap_key": "s",
        **changes,
    }


def test_features_have_the_registered_columns_and_count_what_they_say() -> None:
    first, second = article_features([row(2, body=None, title=None, author="李雷"), row(1)])
    assert set(first) == (columns("feature.articles") | KEYS) - {"schema_version"}
    assert (first["url_fp"], second["url_fp"]) == ("u1", "u2")
    assert (first["title_chars"], first["body_chars"], first["paragraphs"], first["sentences"]) == (3, 29, 3, 3)
    assert (first["han_chars"], first["words"]) == (5, 4)
    assert (first["punctuation_ratio"], first["digit_ratio"]) == (round(4 / 29, 4), round(4 / 29, 4))
    assert (first["short_line_ratio"], first["repeated_line_ratio"]) == (1.0, round(2 / 3, 4))
    assert (first["has_author"], second["has_author"]) == (False, True)
    assert (second["body_chars"], second["simhash"], second["short_line_ratio"]) == (0, None, 0.0)


def test_the_current_row_is_the_newest_revision_over_all_days() -> None:
    later = AT + timedelta(days=1)
    rows = [
        row(1, dt=DAY + timedelta(days=1), collect_time=later, content_hash="new", title="更新", fetch_id="f9"),
        row(1),
        row(1, fetch_id="f3", collect_time=AT + timedelta(hours=1)),
        row(2),
    ]
    current = articles_current(rows)
    assert current == articles_current(reversed(rows))
    assert [(found["canonical_fp"], found["title"]) for found in current] == [("c1", "更新"), ("c2", "老桥 A")]
    assert (current[0]["first_seen_dt"], current[0]["last_seen_dt"]) == (DAY, DAY + timedelta(days=1))
    assert (current[0]["revisions"], current[1]["revisions"]) == (2, 1)
    assert columns("feature.articles_current") | {"source"} <= set(current[0])


def daily(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "fetches": [
            {"collect_time": AT, "body_bytes": 10, "elapsed_ms": 30},
            {"collect_time": AT + timedelta(hours=1), "body_bytes": None, "elapsed_ms": None},
        ],
        "outcomes": [
            {"fetch_id": "a", "outcome": "clean", "reason": None, "rows_out": 1},
            {"fetch_id": "b", "outcome": "failed", "reason": "timeout", "rows_out": 0},
        ],
        "rows": [row()],
        "entries": 7,
        "fields": ["title", "author"],
        **changes,
    }
    return source_daily({"source": "paper", "dt": DAY, "dataset": "articles"}, **given)


def test_the_figures_of_a_day_have_the_registered_columns_and_add_up() -> None:
    found = daily()
    assert set(found) == (columns("feature.source_daily") | KEYS) - {"schema_version"}
    assert (found["fetches"], found["clean"], found["failed"], found["listing"]) == (2, 1, 1, 0)
    assert (found["rows_out"], found["entries"], found["distinct_pages"], found["body_bytes"]) == (1, 7, 1, 10)
    assert (found["mean_elapsed_ms"], found["mean_body_chars"], found["mean_body_quality"]) == (30.0, 29.0, 0.5)
    assert found["missing_rates"] == {"title": 0.0, "author": 1.0}
    assert found["reasons"] == {"timeout": 1}
    assert (found["first_collect_time"], found["last_collect_time"]) == (AT, AT + timedelta(hours=1))


def test_a_day_without_anything_has_no_means() -> None:
    found = daily(fetches=[], outcomes=[], rows=[], entries=0)
    assert (found["fetches"], found["mean_elapsed_ms"], found["mean_body_quality"]) == (0, None, None)
    assert (found["first_collect_time"], found["missing_rates"]) == (None, {"title": 0.0, "author": 0.0})
