"""Feature partitions."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.lake import Lake
from lakehouse.materialize.result import PartitionResult, ProgressSink
from lakehouse.model.partition import SourceDay


def materialize_feature(
    lake: Lake, days: Iterable[SourceDay], progress: ProgressSink | None = None
) -> list[PartitionResult]:
    """One result a day, in order."""
    raise NotImplementedError
