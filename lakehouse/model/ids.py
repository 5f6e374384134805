"""Identifiers that sort by time: the layout of UUID version 7 as 32 hex characters without dashes.

From the left: 48 bits of Unix milliseconds, the version, 12 bits of the fraction of that millisecond, the variant,
62 random bits. Ids of different microseconds sort by time; ids of one microsecond are unique but unordered.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def new_fetch_id(now: datetime) -> str:
    """A new id for a fetch made at the aware instant `now`; raises ValueError for a naive one or one before 1970."""
    return _time_ordered(now)


def new_task_id(now: datetime) -> str:
    """A new id for a task enqueued at the aware instant `now`; raises ValueError as `new_fetch_id`."""
    return _time_ordered(now)


def instant_of(identifier: str) -> datetime:
    """The instant (UTC, microseconds) at which an id was made; raises ValueError for text that is no such id."""
    if len(identifier) != 32 or not set(identifier) <= set("0123456789abcdef"):
        raise ValueError(f"{identifier[:64]!r} is no id: ids are 32 lower-case hex characters")
    number = int(identifier, 16)
    if (number >> 76) & 0xF != 7 or (number >> 62) & 0b11 != 0b10:
        raise ValueError(f"{identifier!r} is no time-ordered id: it lacks the marks of UUID version 7")
    milliseconds, fraction = number >> 80, (number >> 64) & 0xFFF
    return EPOCH + timedelta(milliseconds=milliseconds, microseconds=-(-fraction * 1000 // 4096))


def _time_ordered(now: datetime) -> str:
    if now.tzinfo is None:
        raise ValueError("an id needs an aware instant, got a naive one")
    microseconds = (now - EPOCH) // MICROSECOND
    if microseconds < 0:
        raise ValueError(f"an id needs an instant since 1970, got {now.isoformat()}")
    milliseconds, rest = divmod(microseconds, 1000)
    fraction = rest * 4096 // 1000
    number = milliseconds << 80 | 7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return f"{number:032x}"
