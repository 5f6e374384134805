"""A partition of a table, and the states it can be in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Layer(StrEnum):
    """The layers of the lakehouse; also the Iceberg namespaces."""

    RAW = "raw"
    CLEAN = "clean"
    FEATURE = "feature"
    META = "meta"


class PartitionState(StrEnum):
    """What readers and later assets may assume of a partition."""

    OPEN = "open"
    COMPLETE = "complete"
    EMPTY = "empty"
    FAILED = "failed"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, order=True)
class SourceDay:
    """One business day of one source: Dagster's unit of work."""

    source: str
    dt: date

    @property
    def key(self) -> str:
        """`source|YYYY-MM-DD`."""
        return f"{self.source}|{self.dt.isoformat()}"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One partition of one table."""

    source: str
    dt: date
    schema_version: int

    @property
    def day(self) -> SourceDay:
        """The source and day without the schema version."""
        return SourceDay(self.source, self.dt)

    @property
    def path(self) -> str:
        """The Hive-style folder below a table's `data/`."""
        return f"source={self.source}/dt={self.dt.isoformat()}/schema_version={self.schema_version}"
