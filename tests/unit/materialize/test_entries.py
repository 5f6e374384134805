"""What lists said of a page does not depend on the order of the rows."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.materialize.entries import entry_words

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(url_fp: str, minute: int, **said: str) -> dict[str, Any]:
    """A row of `raw.entries`."""
    return {
        "url_fp": url_fp,
        "collect_time": NOON + timedelta(minutes=minute),
        "page_no": 1,
        "position": minute,
        "entry": json.dumps(said),
    }


def test_the_earliest_list_that_says_a_thing_is_believed() -> None:
    rows = [row("a", 2, title="late", author="Li"), row("a", 1, title="early", date=""), row("b", 3, title="other")]
    for order in itertools.permutations(rows):
        assert entry_words(order) == {"a": {"title": "early", "author": "Li"}, "b": {"title": "other"}}


def test_an_entry_that_says_nothing_is_known_all_the_same() -> None:
    assert entry_words([row("a", 1)]) == {"a": {}}
