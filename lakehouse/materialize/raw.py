"""Raw partitions."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.lake import Lake
from lakehouse.materialize.result import PartitionResult, ProgressSink
from lakehouse.model.partition import SourceDay


def materialize_raw(
    lake: Lake, days: Iterable[SourceDay], progress: ProgressSink | None = None
) -> list[PartitionResult]:
    """Collect the due tasks of each day and commit all of their uploaded batches; one result a day, in order."""
    raise NotImplementedError
