"""Clean partitions: a pure function of the raw partition, the catalog and the decisions, without any network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse.clean import FetchedPage, clean_day
from lakehouse.errors import LakehouseError, UnavailableError
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import ENDED_STATES, PartitionIndex
from lakehouse.logs import get_log
from lakehouse.materialize.books import check_books
from lakehouse.materialize.days import checked_days, dataset_of, days_by_dataset, raw_partition, record_partition
from lakehouse.materialize.entries import entry_words
from lakehouse.materialize.frames import FittedDay, fit_day, outcome_row, reject_row
from lakehouse.materialize.index import RunNotes, describe_partition, parent_name, record_commit, record_state
from lakehouse.materialize.pages import PageParser, Row, is_parsed, parse_job
from lakehouse.materialize.result import PartitionResult, ProgressSink, ignore_progress
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.tables.effective import set_first_effective
from lakehouse.tables.normalize import to_arrow

REJECTS, OUTCOMES = "clean.rejects", "clean.outcomes"
PARENTS = ("fetches", "entries")


@dataclass(frozen=True, slots=True)
class RawDay:
    """What raw holds of a day: rows of `raw.fetches`, and what the lists said of each page by `url_fp`."""

    day: SourceDay
    fetches: tuple[Row, ...]
    words: dict[str, dict[str, str]]


def materialize_clean(
    lake: Lake, days: Iterable[SourceDay], progress: ProgressSink | None = None
) -> list[PartitionResult]:
    """Parse and clean the stored pages of each day and replace its partitions, one commit a table for all days.

    A partition whose rows are the same already is left alone. A day that fails, its books included, keeps what it
    has, carries its error in the results, and does not stop the others. One result a table and day, `clean.<dataset>`
    first. Raises ConfigError for a day to come, UnknownNameError for an unknown source, UnavailableError where store
    or tables do not answer.
    """
    say = progress or ignore_progress
    notes = RunNotes(checked_days(lake, days))
    cleaned = _clean_days(lake, notes, say)
    results: list[tuple[str, SourceDay, pa.Table]] = []
    for dataset, group in days_by_dataset(lake, notes.days).items():
        good = [cleaned[day] for day in group if day in cleaned]
        say(f"committing {dataset} of {len(good)} days")
        frames = _commit(lake, notes, dataset, good)
        results += [(table, day, frame) for table, frame in reversed(frames.items()) for day in group]
    _settle(lake, notes, results)
    return [describe_partition(lake, notes, table, record_partition(lake, day), frame) for table, day, frame in results]


def _clean_days(lake: Lake, notes: RunNotes, say: ProgressSink) -> dict[SourceDay, FittedDay]:
    raws = [_read_raw(lake, day) for day in notes.days]
    pages = sum(is_parsed(row) for raw in raws for row in raw.fetches)
    cleaned = {}
    with PageParser(lake.store, pages) as parser:
        for raw in raws:
            say(f"{raw.day.key}: parsing {len(raw.fetches)} fetches")
            try:
                cleaned[raw.day] = clean_raw_day(lake, raw, parser)
            except UnavailableError:
                raise
            except LakehouseError as error:
                notes.errors[raw.day] = str(error)
                log = get_log(source=raw.day.source, dt=raw.day.dt.isoformat(), run=lake.run_id)
                log.warning("cleaning failed", error=str(error))
    return cleaned


def _read_raw(lake: Lake, day: SourceDay) -> RawDay:
    fetches = lake.committer.scan("raw.fetches", [raw_partition(lake, day)]).to_pylist()
    entries = lake.committer.scan(
        "raw.entries", [raw_partition(lake, day, "entries")], ["url_fp", "entry", "collect_time", "page_no", "position"]
    )
    return RawDay(day, tuple(sorted(fetches, key=lambda row: row["fetch_id"])), entry_words(entries.to_pylist()))


def clean_raw_day(lake: Lake, raw: RawDay, parser: PageParser) -> FittedDay:
    """Clean one day; every row fits the schema and the books balance. Raises InvariantError if they do not."""
    source = lake.catalog.source(raw.day.source)
    template = lake.catalog.template(source.template) if source.template else None
    partition = record_partition(lake, raw.day)
    to_parse = [row for row in raw.fetches if is_parsed(row)]
    job = parse_job(source, template, lake.clock.zone)
    parsed = {
        row["fetch_id"]: found for row, found in zip(to_parse, parser.parse(to_parse, raw.words, job), strict=True)
    }
    day = clean_day(
        source,
        raw.day.dt,
        [FetchedPage(row, parsed.get(row["fetch_id"])) for row in raw.fetches],
        lake.catalog.check_list(source.checks),
        lake.catalog.url_rules,
        partition.schema_version,
    )
    fitted = fit_day(day, lake.catalog.schema(source.writes.partition("@")[0], partition.schema_version))
    check_books(fitted.day, [row["fetch_id"] for row in raw.fetches])
    return fitted


def _commit(lake: Lake, notes: RunNotes, dataset: str, days: Sequence[FittedDay]) -> dict[str, pa.Table]:
    """Replace the days' partitions in rejects, outcomes, then records: whoever sees a record finds its books."""
    placed = [(fitted, record_partition(lake, fitted.source_day)) for fitted in days]
    partitions = [partition for _, partition in placed]
    frames = _frames(lake, dataset, placed)
    for table, frame in frames.items():
        commit = lake.committer.replace(table, frame, partitions)
        for partition in partitions:
            parents = [parent_name(lake, f"raw.{name}", raw_partition(lake, partition.day, name)) for name in PARENTS]
            record_commit(lake, notes, commit, partition, parents)
    filled = [partition for fitted, partition in placed if fitted.day.outcomes]
    set_first_effective(lake.committer, lake.decisions, dataset, filled)
    for fitted, partition in placed:
        notes.rows[partition.day] = dict(Counter(outcome.outcome.value for outcome in fitted.day.outcomes))
    return frames


def _frames(lake: Lake, dataset: str, placed: Sequence[tuple[FittedDay, Partition]]) -> dict[str, pa.Table]:
    catalog = lake.catalog
    rejects = [reject_row(reject, partition) for fitted, partition in placed for reject in fitted.day.rejects]
    outcomes = [outcome_row(outcome, partition) for fitted, partition in placed for outcome in fitted.day.outcomes]
    records = [fitted.frame for fitted, _ in placed] or [to_arrow([], catalog.schema(dataset, None))]
    return {
        REJECTS: to_arrow(rejects, catalog.table_schema(REJECTS, None)),
        OUTCOMES: to_arrow(outcomes, catalog.table_schema(OUTCOMES, None)),
        catalog.schema(dataset, None).table: pa.concat_tables(records, promote_options="default"),
    }


def clean_partition_frames(lake: Lake, day: SourceDay) -> dict[str, pa.Table]:
    """What cleaning a day gives by table, made from raw in memory; nothing is committed."""
    raw = _read_raw(lake, day)
    with PageParser(lake.store, sum(is_parsed(row) for row in raw.fetches)) as parser:
        fitted = clean_raw_day(lake, raw, parser)
    return _frames(lake, dataset_of(lake, day), [(fitted, record_partition(lake, day))])


def _settle(lake: Lake, notes: RunNotes, results: Sequence[tuple[str, SourceDay, pa.Table]]) -> None:
    """Record the states: those of raw, once the day's books balance."""
    index = PartitionIndex(lake.ledger)
    for day in notes.days:
        info = index.get(Layer.RAW, "raw.fetches", raw_partition(lake, day))
        raw_state = info.state if info else PartitionState.OPEN
        failed, ended = day in notes.errors, raw_state in ENDED_STATES
        notes.states[day] = PartitionState.FAILED if failed else raw_state if ended else PartitionState.OPEN
    for table, day, _ in results:
        record_state(lake, notes, table, record_partition(lake, day))
