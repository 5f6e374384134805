"""Which source days a run works on, judged before any work begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from lakehouse.errors import ConfigError
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.specs.base import split_ref

LAYERS = (Layer.RAW, Layer.CLEAN, Layer.FEATURE)
"""Each is made from those before it."""


def checked_days(lake: Lake, days: Iterable[SourceDay], layer: Layer | None = None) -> tuple[SourceDay, ...]:
    """The days in order, each once.

    Raises UnknownNameError for a source, and ConfigError for a day to come or one whose rows, in `layer` or in those it
    is made from, retention has taken: making it anew would leave nothing.
    """
    today = lake.clock.today()
    wanted = tuple(sorted(set(days)))
    for day in wanted:
        lake.catalog.source(day.source)
        if day.dt > today:
            raise ConfigError(
                f"{day.key}: the day lies in the future; today is {today} in {lake.clock.zone.key}, "
                "ask for today or an earlier day"
            )
        if layer is not None:
            _check_kept(lake, day, LAYERS[: LAYERS.index(layer) + 1], today)
    return wanted


def _check_kept(lake: Lake, day: SourceDay, layers: Sequence[Layer], today: date) -> None:
    for layer in layers:
        first = lake.catalog.source(day.source).retention.first_day(layer, today)
        if first is not None and day.dt < first:
            raise ConfigError(
                f"{day.key}: retention of {day.source} keeps {layer} from {first} on, so this day is not made anew; "
                f"lengthen `retention.{layer}` in catalog/sources/{day.source}.yaml if its rows are still there"
            )
    retired = PartitionIndex(lake.ledger).list(source=day.source, dt=day.dt, state=PartitionState.RETIRED)
    gone = sorted(info.table for info in retired if info.layer in layers)
    if gone:
        raise ConfigError(f"{day.key}: retention has removed its rows from {gone[0]}, so it cannot be made anew")


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
