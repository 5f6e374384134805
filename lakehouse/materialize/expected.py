"""Days that a source's schedule asks for, against the days that its raw partitions cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from croniter import croniter

from lakehouse.clock import Clock
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import ENDED_STATES, PartitionIndex, PartitionInfo
from lakehouse.model.partition import Layer, PartitionState
from lakehouse.specs.source import SourceSpec, SourceStatus

HISTORY_DAYS, LEARNING_DAYS = 28, 7
FAR, LEAST_ROWS = 5.0, 5.0


@dataclass(frozen=True, slots=True)
class SourceDays:
    """The last days of one source: those that its schedule asked for, those that ended, those begun and not there.

    `first` is the first day with anything; None for a source that was silent always. `far` names days whose rows or
    bytes are far from the source's own history.
    """

    source: str
    first: date | None
    due: tuple[date, ...]
    ended: tuple[date, ...]
    unfinished: tuple[date, ...]
    missing: tuple[date, ...]
    far: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every due day ended."""
        return not self.unfinished and not self.missing


def completeness(lake: Lake, days: int = 7) -> list[SourceDays]:
    """How complete the last `days` days before today are, by enabled source; a day is due as the schedule says.

    A source that has a first day is due from then on. One that is addressed by nothing is due as well: its past days
    cannot be made good, and so are worth knowing.
    """
    today = lake.clock.today()
    window = [today - timedelta(days=number) for number in range(days, 0, -1)]
    infos: dict[str, dict[date, PartitionInfo]] = {}
    for info in PartitionIndex(lake.ledger).list(Layer.RAW, "raw.fetches"):
        infos.setdefault(info.partition.source, {})[info.partition.dt] = info
    enabled = [one for one in lake.catalog.sources.values() if one.status is SourceStatus.ENABLED]
    return [_source_days(one, infos.get(one.source, {}), window, lake.clock) for one in enabled]


def _source_days(
    source: SourceSpec, infos: Mapping[date, PartitionInfo], window: Sequence[date], clock: Clock
) -> SourceDays:
    first = min(infos) if infos else None
    due = [day for day in window if first is not None and day >= first and is_due(source, day, clock)]
    states = {day: infos[day].state if day in infos else None for day in due}
    kept = (*ENDED_STATES, PartitionState.RETIRED)
    return SourceDays(
        source.source,
        first,
        tuple(due),
        tuple(day for day, state in states.items() if state in kept),
        tuple(day for day, state in states.items() if state is not None and state not in kept),
        tuple(day for day, state in states.items() if state is None),
        tuple(far_from_history(infos, [day for day in window if day in infos])),
    )


def is_due(source: SourceSpec, day: date, clock: Clock) -> bool:
    """Whether the schedule asks for a day: a batch task's cron has a time in it; a stream is due every day."""
    start, end = clock.start_of(day).astimezone(clock.zone), clock.start_of(day + timedelta(days=1))
    for task in source.tasks:
        if task.cron is None:
            return True
        if croniter(task.cron, start - timedelta(seconds=1)).get_next(datetime) < end:
            return True
    return False


def far_from_history(infos: Mapping[date, PartitionInfo], days: Sequence[date]) -> list[str]:
    """Days whose rows or bytes lie far from the source's own 28 days before; the first week only observes.

    Far is more than five times the median distance from the median, and more than five of what is counted.
    """
    found = []
    for day in days:
        past = [infos[one] for one in infos if day - timedelta(days=HISTORY_DAYS) <= one < day]
        if len(past) < LEARNING_DAYS:
            continue
        for what in ("row_count", "byte_size"):
            values = [float(getattr(one, what)) for one in past]
            middle, value = median(values), float(getattr(infos[day], what))
            spread = max(median(abs(one - middle) for one in values), middle * 0.1, 1.0)
            if abs(value - middle) > max(FAR * spread, LEAST_ROWS):
                noun = "rows" if what == "row_count" else "bytes"
                found.append(f"{day}: {value:,.0f} {noun}, usually {middle:,.0f}")
    return found
