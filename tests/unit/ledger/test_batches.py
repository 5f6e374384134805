from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from lakehouse.errors import UnknownNameError
from lakehouse.ledger.batches import BatchIndex, BatchState
from lakehouse.ledger.ledger import Ledger

DAY = date(2026, 3, 1)


def test_a_batch_is_uploaded_then_committed_and_never_goes_back(ledger: Ledger, hands: Any) -> None:
    index = BatchIndex(ledger)
    index.register("b1", "news", DAY, "batch/b1", {"fetches": 3})
    hands.move(1)
    index.register("b0", "news", DAY, "batch/b0", {"fetches": 1})
    index.register("b2", "world", DAY, "batch/b2", {})
    assert [row.batch_id for row in index.uploaded("news", DAY)] == ["b1", "b0"]
    assert len(index.uploaded()) == 3
    index.mark_committed("b1", {"raw.fetches": 2**62})
    index.register("b1", "news", DAY, "batch/b1", {"fetches": 3})
    assert [row.batch_id for row in index.uploaded("news")] == ["b0"]
    (row,) = index.committed("news", DAY)
    assert (row.state, row.key, row.counts, row.snapshots) == (
        BatchState.COMMITTED,
        "batch/b1",
        {"fetches": 3},
        {"raw.fetches": 2**62},
    )
    assert row.committed_at == ledger.clock.now_utc()


def test_an_unknown_batch_cannot_be_committed(ledger: Ledger) -> None:
    with pytest.raises(UnknownNameError, match="b9"):
        BatchIndex(ledger).mark_committed("b9", {})
