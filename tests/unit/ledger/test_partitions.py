from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from lakehouse.errors import UnknownNameError
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.model.partition import Layer, Partition, PartitionState

PART = Partition("news", date(2026, 3, 1), 2)
INFO = PartitionInfo(
    layer=Layer.CLEAN,
    table="clean.articles",
    dataset="articles",
    partition=PART,
    base_path="s3://lake/clean/articles/data",
    file_count=1,
    row_count=2**40,
    byte_size=2**41,
    state=PartitionState.OPEN,
    checksum="ab" * 16,
    table_snapshot_id=2**62,
    parents=("raw.fetches/source=news/dt=2026-03-01/schema_version=1",),
)


def test_what_is_recorded_is_read_back_and_keeps_its_first_time(ledger: Ledger, hands: Any) -> None:
    index = PartitionIndex(ledger)
    first = ledger.clock.now_utc()
    index.record(INFO)
    assert index.get(Layer.CLEAN, "clean.articles", PART) == replace(INFO, created_at=first, updated_at=first)
    hands.move(60)
    index.record(replace(INFO, row_count=7, state=PartitionState.COMPLETE))
    now = ledger.clock.now_utc()
    assert index.list(source="news") == [
        replace(INFO, row_count=7, state=PartitionState.COMPLETE, created_at=first, updated_at=now, completed_at=now)
    ]


def test_states_move_and_a_reopened_day_is_no_longer_completed(ledger: Ledger) -> None:
    index = PartitionIndex(ledger)
    index.record(replace(INFO, state=PartitionState.COMPLETE))
    index.set_state(Layer.CLEAN, "clean.articles", PART, PartitionState.OPEN)
    (info,) = index.list(state=PartitionState.OPEN)
    assert info.completed_at is None
    index.set_state(Layer.CLEAN, "clean.articles", PART, PartitionState.EMPTY)
    index.set_state(Layer.CLEAN, "clean.articles", PART, PartitionState.RETIRED)
    (info,) = index.list(layer=Layer.CLEAN, table="clean.articles", dt=PART.dt)
    assert info.state is PartitionState.RETIRED
    assert info.completed_at is not None


def test_a_partition_that_was_never_recorded_has_no_state_to_set(ledger: Ledger) -> None:
    index = PartitionIndex(ledger)
    assert index.get(Layer.RAW, "raw.fetches", PART) is None
    with pytest.raises(UnknownNameError, match=r"source=news/dt=2026-03-01/schema_version=2"):
        index.set_state(Layer.RAW, "raw.fetches", PART, PartitionState.COMPLETE)
