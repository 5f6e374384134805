"""`meta.effective`: which schema version of a day readers get; derived from `meta.decisions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from lakehouse.model.partition import Partition
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective schema version (and fix) of a day of one dataset and source."""

    dataset: str
    source: str
    dt: date
    schema_version: int
    fix_id: str | None = None


def set_first_effective(
    committer: Committer, decisions: Decisions, dataset: str, partitions: Sequence[Partition]
) -> list[Effective]:
    """Make each partition's version effective where its day has none yet; returns the pointers that were set."""
    raise NotImplementedError


def current(committer: Committer) -> dict[tuple[str, str, date], Effective]:
    """All effective pointers by (dataset, source, dt)."""
    raise NotImplementedError
