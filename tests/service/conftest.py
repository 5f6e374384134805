"""Everything here needs the real servers; a server that can't start fails the tests, it never skips them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder as a service test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.service)
