"""Which source days a run works on, judged before any work begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakehouse.errors import ConfigError
from lakehouse.lake import Lake
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.specs.base import split_ref


def checked_days(lake: Lake, days: Iterable[SourceDay]) -> tuple[SourceDay, ...]:
    """The days in order, each once; raises UnknownNameError for a source and ConfigError for a day to come."""
    today = lake.clock.today()
    wanted = tuple(sorted(set(days)))
    for day in wanted:
        lake.catalog.source(day.source)
        if day.dt > today:
            raise ConfigError(
                f"{day.key}: the day lies in the future; today is {today} in {lake.clock.zone.key}, "
                "ask for today or an earlier day"
            )
    return wanted


def raw_partition(lake: Lake, day: SourceDay, dataset: str = "fetches") -> Partition:
    """The raw partition of a day; raw tables have schema versions of their own."""
    return Partition(day.source, day.dt, lake.catalog.schema(dataset, None).version)


def record_partition(lake: Lake, day: SourceDay) -> Partition:
    """The partition of a day in its dataset's tables, with the schema version that the source pins."""
    _, version = split_ref(lake.catalog.source(day.source).writes)
    return Partition(day.source, day.dt, version)


def dataset_of(lake: Lake, day: SourceDay) -> str:
    """The dataset that the day's source writes."""
    return split_ref(lake.catalog.source(day.source).writes)[0]


def days_by_dataset(lake: Lake, days: Sequence[SourceDay]) -> dict[str, list[SourceDay]]:
    """The days grouped by the dataset that their sources write."""
    groups: dict[str, list[SourceDay]] = {}
    for day in days:
        groups.setdefault(dataset_of(lake, day), []).append(day)
    return groups
