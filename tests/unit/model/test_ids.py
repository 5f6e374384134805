"""Ids sort by time, are unique and say when they were made."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.model.ids import EPOCH, instant_of, new_fetch_id, new_task_id

NOW = datetime(2026, 3, 1, 8, 30, 0, 123456, tzinfo=timezone(timedelta(hours=8)))
INSTANTS = st.integers(0, 230 * 365 * 86400 * 10**6).map(lambda n: EPOCH + timedelta(microseconds=n))


def test_an_id_has_the_layout_of_a_uuid_of_version_7() -> None:
    made = new_fetch_id(NOW)
    assert len(made) == 32
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert int(made[:12], 16) == int(NOW.timestamp() * 1000)


def test_ids_of_one_instant_differ() -> None:
    made = {new_fetch_id(NOW) for _ in range(10_000)} | {new_task_id(NOW) for _ in range(10_000)}
    assert len(made) == 20_000


@given(INSTANTS, st.integers(1, 10**12))
def test_a_later_id_sorts_behind(first: datetime, microseconds: int) -> None:
    later = first + timedelta(microseconds=microseconds)
    assert new_fetch_id(first) < new_task_id(later)


@given(INSTANTS)
def test_an_id_says_when_it_was_made(instant: datetime) -> None:
    assert instant_of(new_fetch_id(instant)) == instant


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="an id needs an aware instant, got a naive one"):
        new_fetch_id(NOW.replace(tzinfo=None))


def test_an_instant_before_1970_is_refused() -> None:
    with pytest.raises(ValueError, match="since 1970"):
        new_task_id(datetime(1969, 12, 31, 23, 59, tzinfo=UTC))


@pytest.mark.parametrize("text", ["", "x" * 32, "0" * 31, "0" * 32, "A" * 32])
def test_other_text_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (time-ordered )?id"):
        instant_of(text)
