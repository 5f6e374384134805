"""Upkeep of one table after the other: expiry down to a bounded number of table snapshots, then garbage collection.

Both hold the table's lock. Order: the list of files that become garbage is written, the metadata commit follows, files
are removed last, and the list with them; a run that dies in between is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

KEEP_UNTAGGED = 50
KEEP_TAGS = 100
DAY_TAG_AGE = timedelta(days=60)
ORPHAN_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expiry dropped from a table's metadata."""

    table: str
    snapshots: tuple[int, ...]
    tags: tuple[str, ...]
    snapshots_left: int
    tags_left: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What garbage collection removed: files by kind (`data`, `manifest`, `list`, `statistics`, `metadata`), and bytes."""

    table: str
    files: int
    bytes: int
    kinds: dict[str, int]


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """Upkeep of one table; `applied` is false for a plan."""

    table: str
    expiry: Expiry
    garbage: Collection
    applied: bool
    seconds: float


def expire(
    committer: Committer,
    table: str,
    *,
    keep_untagged: int = KEEP_UNTAGGED,
    keep_tags: int = KEEP_TAGS,
    now: datetime | None = None,
) -> Expiry:
    """Drop old untagged table snapshots and day tags; the files that only they reached are listed as garbage.

    Nothing is committed, and no metadata grows, where nothing is to be dropped.
    """
    raise NotImplementedError


def collect_garbage(
    committer: Committer, table: str, *, orphan_age: timedelta = ORPHAN_AGE, now: datetime | None = None
) -> Collection:
    """Remove listed garbage that nothing needs any more, and files that no table snapshot ever reached.

    The latter must be older than `orphan_age`, so that a writer between its files and its commit keeps them.
    """
    raise NotImplementedError


def upkeep(
    committer: Committer,
    tables: Iterable[str],
    *,
    apply: bool = True,
    orphan_age: timedelta = ORPHAN_AGE,
    now: datetime | None = None,
) -> list[UpkeepReport]:
    """Expire and collect table after table; `apply=False` changes nothing and says what would be done."""
    raise NotImplementedError
