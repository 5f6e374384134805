"""Dagster's partitions: source (grows with the catalog) × dt (a rolling window of business days).

Older days than the window are reached through the `materialize_list` job, which takes keys of any day.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

import dagster as dg

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError
from lakehouse.model.partition import SourceDay

SOURCES = dg.DynamicPartitionsDefinition(name="source")


def define_source_days(clock: Clock, window_days: int) -> dg.MultiPartitionsDefinition:
    """The last `window_days` business days, today included, of every source."""
    first = clock.today() - timedelta(days=window_days - 1)
    days = dg.DailyPartitionsDefinition(start_date=first.isoformat(), timezone=clock.zone.key, end_offset=1)
    return dg.MultiPartitionsDefinition({"source": SOURCES, "dt": days})


def key_of(day: SourceDay) -> dg.MultiPartitionKey:
    """Dagster's key of a source day."""
    return dg.MultiPartitionKey({"source": day.source, "dt": day.dt.isoformat()})


def days_of(keys: Iterable[str]) -> list[SourceDay]:
    """The source days of Dagster's keys, sorted."""
    return sorted(_day_of(key) for key in keys)


def _day_of(key: str) -> SourceDay:
    if isinstance(key, dg.MultiPartitionKey):
        parts = key.keys_by_dimension
        return SourceDay(parts["source"], date.fromisoformat(parts["dt"]))
    day, _, source = key.partition("|")
    try:
        return SourceDay(source, date.fromisoformat(day))
    except ValueError as error:
        raise ConfigError(f"partition key {key!r} is not of the form YYYY-MM-DD|source") from error
