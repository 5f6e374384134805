"""What materializing gave for one partition of one table: all that an asset, the command line or a test shows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.model.partition import Partition, PartitionState, SourceDay

PREVIEW_ROWS = 10
ProgressSink = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The state of one partition after a run; a run gives one result a table and source day.

    `rows` counts the day's fetches by outcome (clean, feature) or its ended tasks by state (raw); `row_count` is the
    partition's rows in `table`. `columns` are (name, Iceberg type, description). `changed` says whether this run
    committed anything to the partition; `snapshot_id` is the table snapshot that this run wrote, else the one that
    holds, None for a table without any. `error` is the message of what failed; then nothing of the partition was
    replaced. `message` says what a person should know although nothing failed. `elapsed` is the run's seconds up to
    this result: the days of one run share their commits.
    """

    table: str
    partition: Partition
    state: PartitionState
    changed: bool
    snapshot_id: int | None
    rows: Mapping[str, int]
    columns: tuple[tuple[str, str, str], ...] = ()
    uri: str = ""
    preview: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    row_count: int = 0
    message: str = ""
    elapsed: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the partition was materialized."""
        return self.error is None


def failed_days(results: Iterable[PartitionResult]) -> dict[SourceDay, str]:
    """Days that failed, each with its message."""
    return {result.partition.day: result.error for result in results if result.error is not None}


def ignore_progress(_: str) -> None:
    """For callers who do not watch."""
