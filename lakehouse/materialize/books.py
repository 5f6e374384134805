"""The books: every fetch has exactly one outcome, and clean rows are the sum of what the clean fetches gave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl
import pyarrow as pa

from lakehouse.errors import InvariantError
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.materialize.days import checked_days, raw_partition, record_partition
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.model.record import CleanDay
from lakehouse.specs.base import split_ref

KEY = ["source", "dt"]
PAGE = [*KEY, "fetch_id"]
RULES = {
    "fetches without an outcome": (pl.col("fetches") > 0) & (pl.col("outcomes") == 0),
    "outcomes without a fetch": (pl.col("fetches") == 0) & (pl.col("outcomes") > 0),
    "clean rows without a fetch": (pl.col("fetches") == 0) & (pl.col("rows") > 0),
    "fetches with several outcomes": pl.col("outcomes") > 1,
    "fetches that are stored twice": pl.col("fetches") > 1,
    "fetches whose clean rows differ from rows_out": pl.col("rows") != pl.col("rows_out"),
    "fetches whose outcome does not fit their rows_out": pl.col("clean") != (pl.col("rows_out") > 0),
}


@dataclass(frozen=True, slots=True)
class DayBooks:
    """The books of one source and day: fetches, fetches by outcome, and clean rows as promised and as they are."""

    source: str
    dt: date
    fetches: int
    outcomes: Mapping[str, int]
    rows_out: int
    rows: int
    problems: tuple[str, ...]

    @property
    def cleaned(self) -> bool:
        """Whether the day was cleaned at all, or had nothing to clean."""
        return bool(self.outcomes) or self.rows > 0 or self.fetches == 0

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
    place = {"source": day.source, "dt": day.dt}
    outcomes = [
        {**place, "fetch_id": row.fetch_id, "outcome": row.outcome.value, "rows_out": row.rows_out}
        for row in day.outcomes
    ]
    pages = join_pages(
        _frame([{**place, "fetch_id": name} for name in fetch_ids]),
        _frame(outcomes, outcome=pl.String, rows_out=pl.Int64),
        _frame([{**place, "fetch_id": row["fetch_id"]} for row in day.rows]),
    )
    problems = [problem for books in balance(pages) for problem in books.problems]
    if problems:
        raise InvariantError(
            f"books of {day.source}|{day.dt} do not balance: {'; '.join(problems)}; nothing was committed. "
            "The cleaning chain lost or doubled a page: keep the raw partition and report this"
        )


def audit_books(lake: Lake, days: Iterable[SourceDay]) -> BooksAudit:
    """The books of days as the tables have them now, for the schema versions that the sources pin."""
    wanted = checked_days(lake, days)
    return _audit(
        lake,
        [raw_partition(lake, day) for day in wanted],
        [record_partition(lake, day) for day in wanted],
    )


def audit_all_books(lake: Lake, gone: Collection[str] = ()) -> BooksAudit:
    """The books of all days that raw or clean tables hold, but for data files that are known to be `gone`."""
    return _audit(lake, None, None, gone)


def _audit(
    lake: Lake, raw: Sequence[Partition] | None, clean: Sequence[Partition] | None, gone: Collection[str] = ()
) -> BooksAudit:
    fetches = _scan(lake, "raw.fetches", raw, PAGE, gone)
    outcomes = _scan(lake, "clean.outcomes", clean, [*PAGE, "schema_version", "outcome", "rows_out"], gone)
    tables = [specs[-1].table for specs in lake.catalog.schemas.values() if specs[-1].frame == "record"]
    rows = pl.concat([_scan(lake, table, clean, [*PAGE, "schema_version"], gone) for table in tables])
    pages = join_pages(fetches, _pinned(lake, outcomes), _pinned(lake, rows))
    return BooksAudit(tuple(balance(_without_retired(lake, pages))))


def _without_retired(lake: Lake, pages: pl.DataFrame) -> pl.DataFrame:
    """Books of a day of which retention took one side cannot balance any more."""
    infos = PartitionIndex(lake.ledger).list(state=PartitionState.RETIRED)
    days = [{"source": i.partition.source, "dt": i.partition.dt} for i in infos if i.layer is not Layer.FEATURE]
    return pages.join(pl.DataFrame(days, schema={"source": pl.String, "dt": pl.Date}), on=KEY, how="anti")


def _scan(
    lake: Lake, table: str, partitions: Sequence[Partition] | None, columns: Sequence[str], gone: Collection[str]
) -> pl.DataFrame:
    frame: pa.Table = lake.committer.scan(table, partitions, columns, without=gone)
    return pl.DataFrame(frame)


def _pinned(lake: Lake, frame: pl.DataFrame) -> pl.DataFrame:
    """Only the schema version that a source writes; for sources no longer declared, the newest of each day."""
    pins = {name: split_ref(source.writes)[1] for name, source in lake.catalog.sources.items()}
    pinned = pl.col("source").replace_strict(pins, default=None, return_dtype=pl.Int32)
    newest = pl.col("schema_version").max().over(KEY)
    return frame.filter(pl.col("schema_version") == pl.coalesce(pinned, newest))


def _frame(rows: Sequence[Mapping[str, Any]], **more: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"source": pl.String, "dt": pl.Date, "fetch_id": pl.String, **more})


def join_pages(fetches: pl.DataFrame, outcomes: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """One row a fetch id of a day: how often each table names it, its outcome and its rows_out."""
    fetched = fetches.group_by(PAGE).agg(fetches=pl.len())
    entered = outcomes.group_by(PAGE).agg(
        outcomes=pl.len(),
        outcome=pl.col("outcome").first(),
        rows_out=pl.col("rows_out").sum(),
        clean=(pl.col("outcome") == "clean").any(),
    )
    kept = rows.group_by(PAGE).agg(rows=pl.len())
    pages = fetched.join(entered, on=PAGE, how="full", coalesce=True).join(kept, on=PAGE, how="full", coalesce=True)
    counts = [pl.col(name).fill_null(0).cast(pl.Int64) for name in ("fetches", "outcomes", "rows_out", "rows")]
    return pages.with_columns(*counts, pl.col("clean").fill_null(value=False))


def balance(pages: pl.DataFrame) -> list[DayBooks]:
    """The books of each source and day of `join_pages`, in order, with what does not balance."""
    found = []
    for (source, dt), group in sorted(pages.group_by(KEY), key=lambda item: item[0]):
        problems = []
        for what, rule in RULES.items():
            names = group.filter(rule)["fetch_id"].sort()
            if len(names):
                problems.append(f"{source}|{dt}: {len(names)} {what}, such as {', '.join(names.head(3))}")
        counted = group.filter(pl.col("outcome").is_not_null()).group_by("outcome").len().sort("outcome")
        found.append(
            DayBooks(
                source=str(source),
                dt=dt,
                fetches=int(group["fetches"].sum()),
                outcomes=dict(counted.iter_rows()),
                rows_out=int(group["rows_out"].sum()),
                rows=int(group["rows"].sum()),
                problems=tuple(problems),
            )
        )
    return found
