"""A ledger of its own for each test, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.clock import Clock
from lakehouse.ledger.ledger import Ledger


class Hands:
    """The hands of a clock."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def ledger(tmp_path: Path, hands: Hands) -> Iterator[Ledger]:
    opened = Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", Clock.in_zone("Asia/Shanghai", hands))
    yield opened
    opened.close()
