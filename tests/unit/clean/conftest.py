"""A source, its rules, and fetches with made-up pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from lakehouse.clean import FetchedPage
from lakehouse.model.record import Parsed, TimeConfidence
from lakehouse.model.urls import url_fp
from lakehouse.specs.checks import ChecksSpec, UrlRules
from lakehouse.specs.source import SourceSpec

DAY = date(2024, 3, 6)
START = datetime(2024, 3, 6, 1, tzinfo=UTC)
BODY = "河上的老桥今天重新开放，数百名居民一早就来到桥头，等着走过去看看对岸的变化。" * 8

MakePage = Callable[..., FetchedPage]


@pytest.fixture(scope="session")
def source() -> SourceSpec:
    """A source with tags out of order."""
    return SourceSpec.model_validate(
        {
            "source": "paper",
            "name": "The Paper",
            "entry_url": "http://paper.example/",
            "tags": ["town", "news", "town"],
            "tasks": [{"name": "front", "url": "http://paper.example/", "cron": "0 6 * * *"}],
        }
    )


@pytest.fixture(scope="session")
def rules() -> UrlRules:
    """Tracking parameters do not tell pages apart."""
    return UrlRules(version=3, drop_params=("utm_*",))


@pytest.fixture(scope="session")
def checks() -> ChecksSpec:
    """One check of each action."""
    return ChecksSpec.model_validate(
        {
            "checks": "test",
            "description": "test",
            "rules": [
                {"field": "title", "reason": "title_missing", "action": "reject", "present": True},
                {"field": "title", "reason": "title_too_long", "action": "drop", "max": 30},
                {"field": "body", "reason": "body_too_short", "action": "review", "min": 50},
                {"field": "time_confidence", "reason": "time_unknown", "action": "flag", "min": 1},
                {"field": "author", "reason": "no_author", "action": "flag", "present": True},
            ],
        }
    )


def make_page(number: int, *, url: str | None = None, problem: str | None = None, **changes: Any) -> FetchedPage:
    """A detail fetch with its page; `values` change what was parsed, other names change the fetch."""
    values = {
        "title": "老桥重新开放",
        "publish_time": START - timedelta(hours=2),
        "time_confidence": TimeConfidence.ABSOLUTE,
        "author": "李雷",
        "origin": None,
        "body": BODY,
        **changes.pop("values", {}),
    }
    address = url or f"http://paper.example/n/{number}"
    fetch = {
        "fetch_id": f"{number:032x}",
        "batch_id": "b",
        "task_id": f"task-{number}",
        "kind": "detail",
        "status": 200,
        "error": None,
        "limited": None,
        "url": address,
        "url_fp": url_fp(address),
        "collect_time": START + timedelta(minutes=number),
        "snap_key": f"snap/{number}",
        **changes,
    }
    parsed = Parsed(values, {}, "generic@1", 1, problem, "why" if problem else None)
    return FetchedPage(fetch, parsed if changes.get("parsed", True) else None)


@pytest.fixture(scope="session")
def page() -> MakePage:
    """Makes fetched pages."""
    return make_page
