"""The books: every fetch has exactly one outcome, and clean rows are the sum of what the clean fetches gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.errors import InvariantError
from lakehouse.lake import Lake
from lakehouse.materialize.days import checked_days, dataset_of, raw_partition, record_partition
from lakehouse.model.partition import SourceDay
from lakehouse.model.record import CleanDay, Outcome


@dataclass(frozen=True, slots=True)
class DayBooks:
    """The books of one source, day and dataset version, as the tables have them."""

    source: str
    dt: str
    dataset: str
    schema_version: int
    fetches: int
    outcomes: Mapping[str, int]
    rows_out: int
    rows: int
    problems: tuple[str, ...]

    @property
    def balanced(self) -> bool:
        """Whether nothing is missing and nothing is counted twice."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class BooksAudit:
    """The books of several days."""

    days: tuple[DayBooks, ...]

    @property
    def balanced(self) -> bool:
        """Whether all of them balance."""
        return not self.problems

    @property
    def fetches(self) -> int:
        """Fetches of all days."""
        return sum(day.fetches for day in self.days)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, a sentence each."""
        return tuple(problem for day in self.days for problem in day.problems)


def check_books(day: CleanDay, fetch_ids: Sequence[str]) -> None:
    """Raise InvariantError unless the books of a cleaned day balance; called before anything is committed."""
    outcomes = [(row.fetch_id, row.outcome.value, row.rows_out) for row in day.outcomes]
    rows = Counter(str(row["fetch_id"]) for row in day.rows)
    problems = _problems(f"{day.source}|{day.dt}", fetch_ids, outcomes, rows)
    if problems:
        raise InvariantError(
            f"books of {day.source}|{day.dt} do not balance: {'; '.join(problems)}; nothing was committed. "
            "The cleaning chain lost or doubled a page: keep the day's raw partition and report this"
        )


def audit_books(lake: Lake, days: Iterable[SourceDay]) -> BooksAudit:
    """The books of days as the tables have them now, for the schema versions that the sources pin."""
    return BooksAudit(tuple(_audit_day(lake, day) for day in checked_days(lake, days)))


def _audit_day(lake: Lake, day: SourceDay) -> DayBooks:
    partition, dataset = record_partition(lake, day), dataset_of(lake, day)
    fetch_ids = _column(lake, "raw.fetches", raw_partition(lake, day), "fetch_id")
    rows = Counter(_column(lake, lake.catalog.schema(dataset, None).table, partition, "fetch_id"))
    frame = lake.committer.scan("clean.outcomes", [partition], ["fetch_id", "outcome", "rows_out"])
    outcomes = [(row["fetch_id"], row["outcome"], row["rows_out"]) for row in frame.to_pylist()]
    return DayBooks(
        source=day.source,
        dt=day.dt.isoformat(),
        dataset=dataset,
        schema_version=partition.schema_version,
        fetches=len(fetch_ids),
        outcomes=dict(Counter(outcome for _, outcome, _ in outcomes)),
        rows_out=sum(count for _, _, count in outcomes),
        rows=rows.total(),
        problems=tuple(_problems(day.key, fetch_ids, outcomes, rows)),
    )


def _column(lake: Lake, table: str, partition: Any, name: str) -> list[str]:
    values: list[str] = lake.committer.scan(table, [partition], [name])[name].to_pylist()
    return values


def _problems(
    key: str, fetch_ids: Sequence[str], outcomes: Sequence[tuple[str, str, int]], rows: Mapping[str, int]
) -> list[str]:
    """What does not balance, a sentence each."""
    found = []
    counted = Counter(fetch_id for fetch_id, _, _ in outcomes)
    known = Counter(fetch_ids)
    found += _named(key, "fetches without an outcome", known.keys() - counted.keys())
    found += _named(key, "outcomes without a fetch", counted.keys() - known.keys())
    found += _named(key, "fetches with several outcomes", [name for name, count in counted.items() if count > 1])
    found += _named(key, "fetches that are stored twice", [name for name, count in known.items() if count > 1])
    given = {fetch_id: count for fetch_id, _, count in outcomes}
    wrong = [name for name in given.keys() | rows.keys() if given.get(name, 0) != rows.get(name, 0)]
    found += _named(key, "fetches whose clean rows differ from rows_out", wrong)
    empty = [fetch_id for fetch_id, name, count in outcomes if (name == Outcome.CLEAN) != (count > 0)]
    found += _named(key, "fetches whose outcome does not fit their rows_out", empty)
    return found


def _named(key: str, what: str, fetch_ids: Iterable[str]) -> list[str]:
    names = sorted(fetch_ids)
    if not names:
        return []
    return [f"{key}: {len(names)} {what}, such as {', '.join(names[:3])}"]
