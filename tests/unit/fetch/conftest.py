"""Sources made for a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse.specs.source import SourceSpec


@pytest.fixture
def make_source() -> Callable[..., SourceSpec]:
    def make(**changes: Any) -> SourceSpec:
        task = {"name": "column", "url": "http://news.test/", "cron": "30 6 * * *", "list": {"links": "a"}}
        values = {"source": "news", "name": "News", "entry_url": "http://news.test/", "tasks": [task], **changes}
        return SourceSpec.model_validate(values)

    return make
