"""Clean partitions: a pure function of the raw partition, the catalog and the decisions, without any network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from lakehouse.materialize.holds import Hold, holds_of, is_up_to_date, keeps_rows, raw_marks, template_of
from lakehouse.materialize.index import RunNotes, describe_partition, record_commit, record_state
from lakehouse.materialize.pages import PageParser, Row, is_parsed, parse_job
from lakehouse.materialize.result import PartitionResult, ProgressSink, ignore_progress
from lakehouse.materialize.views import refresh_after
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.tables.effective import set_first_effective
from lakehouse.tables.fixes import read_rows
from lakehouse.tables.normalize import to_arrow

REJECTS, OUTCOMES = "clean.rejects", "clean.outcomes"
ENTRY_COLUMNS = ("source", "dt", "url_fp", "entry", "collect_time", "page_no", "position")
DAYS_AT_ONCE = 20
ROUNDS = 3

Marks = Mapping[SourceDay, tuple[str, ...]]
Holds = Mapping[SourceDay, Hold]


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
    notes = RunNotes(checked_days(lake, days, Layer.CLEAN))
    frames: dict[tuple[str, SourceDay], pa.Table] = {}
    holds = holds_of(lake, notes.days)
    kept = [day for day in notes.days if day in holds and keeps_rows(lake, day, holds[day])]
    for day in kept:
        frames |= _keep(lake, notes, day, holds[day])
    waiting = [day for day in notes.days if day not in kept]
    for _ in range(ROUNDS if waiting else 0):
        marks = {day: raw_marks(lake, day) for day in waiting}
        frames |= _clean_and_commit(lake, notes, marks, holds, say)
        # Raw may have got more rows meanwhile, and somebody else may have cleaned them before this run committed.
        waiting = [day for day in waiting if raw_marks(lake, day) != marks[day]]
        if not waiting:
            break
    _settle(lake, notes, list(frames), waiting)
    refresh_after(lake, {table for table, _ in frames} - {REJECTS, OUTCOMES})
    return [
        describe_partition(lake, notes, table, record_partition(lake, day), frame)
        for (table, day), frame in frames.items()
    ]


def _keep(lake: Lake, notes: RunNotes, day: SourceDay, hold: Hold) -> dict[tuple[str, SourceDay], pa.Table]:
    """Leave a held day as it is; gives each table's frame as `_clean_and_commit` does."""
    partition = record_partition(lake, day)
    record = lake.catalog.schema(dataset_of(lake, day), None).table
    frames = {(table, day): lake.committer.scan(table, [partition]) for table in (record, OUTCOMES, REJECTS)}
    notes.rows[day] = dict(Counter(frames[OUTCOMES, day].column("outcome").to_pylist()))
    notes.messages[day] = hold.message
    if hold.given and not is_up_to_date(lake, day, hold):
        notes.errors[day] = f"{day.key} has pages that came later and are in no table: {hold.message}"
    return frames


def _clean_and_commit(
    lake: Lake, notes: RunNotes, marks: Marks, holds: Holds, say: ProgressSink
) -> dict[tuple[str, SourceDay], pa.Table]:
    """Clean the days of `marks` and replace their partitions; gives each table's frame by table and day."""
    cleaned = _clean_days(lake, notes, list(marks), holds, say)
    found: dict[tuple[str, SourceDay], pa.Table] = {}
    for dataset, group in days_by_dataset(lake, list(marks)).items():
        good = [cleaned[day] for day in group if day in cleaned]
        say(f"committing {dataset} of {len(good)} days")
        frames = _commit(lake, notes, dataset, good)
        found |= {(table, day): frame for table, frame in reversed(frames.items()) for day in group}
    return found


def _clean_days(
    lake: Lake, notes: RunNotes, days: Sequence[SourceDay], holds: Holds, say: ProgressSink
) -> dict[SourceDay, FittedDay]:
    cleaned = {}
    with PageParser(lake.store, _count_fetches(lake, days)) as parser:
        for raw in _read_raw(lake, days):
            notes.errors.pop(raw.day, None)
            say(f"{raw.day.key}: parsing {len(raw.fetches)} fetches")
            log = get_log(source=raw.day.source, dt=raw.day.dt.isoformat(), run=lake.run_id)
            try:
                cleaned[raw.day] = clean_raw_day(lake, raw, parser, holds.get(raw.day))
            except UnavailableError:
                raise
            except LakehouseError as error:
                notes.errors[raw.day] = str(error)
                log.warning("cleaning failed", error=str(error))
            except Exception as error:
                # Whatever one page provokes must not stop the other sources of the run.
                notes.errors[raw.day] = f"cleaning {raw.day.key} failed: {type(error).__name__}: {error}"
                log.exception("cleaning failed")
    return cleaned


def _count_fetches(lake: Lake, days: Sequence[SourceDay]) -> int:
    """Roughly how many pages wait, by the index."""
    index = PartitionIndex(lake.ledger)
    infos = (index.get(Layer.RAW, "raw.fetches", raw_partition(lake, day)) for day in days)
    return sum(info.row_count for info in infos if info is not None)


def _read_raw(lake: Lake, days: Sequence[SourceDay]) -> Iterator[RawDay]:
    """What raw holds of each day, in order; a few days are read at once."""
    for start in range(0, len(days), DAYS_AT_ONCE):
        chunk = days[start : start + DAYS_AT_ONCE]
        fetches = _rows_by_day(lake.committer.scan("raw.fetches", [raw_partition(lake, day) for day in chunk]))
        lists = [raw_partition(lake, day, "entries") for day in chunk]
        entries = _rows_by_day(lake.committer.scan("raw.entries", lists, ENTRY_COLUMNS))
        for day in chunk:
            rows = sorted(fetches.get(day, []), key=lambda row: str(row["fetch_id"]))
            yield RawDay(day, tuple(rows), entry_words(entries.get(day, [])))


def _rows_by_day(frame: pa.Table) -> dict[SourceDay, list[Row]]:
    found: dict[SourceDay, list[Row]] = {}
    for row in frame.to_pylist():
        found.setdefault(SourceDay(row["source"], row["dt"]), []).append(row)
    return found


def clean_raw_day(lake: Lake, raw: RawDay, parser: PageParser, hold: Hold | None) -> FittedDay:
    """Clean one day; every row fits the schema and the books balance. Raises InvariantError if they do not."""
    source = lake.catalog.source(raw.day.source)
    template = template_of(lake, raw.day, hold)
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
    commits = [lake.committer.replace(table, frame, partitions) for table, frame in frames.items()]
    filled = [partition for fitted, partition in placed if fitted.day.outcomes]
    set_first_effective(lake.committer, lake.decisions, dataset, filled)
    for commit in commits:
        record_commit(lake, notes, commit, partitions)
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
    """What cleaning a day gives by table, made from raw in memory, or given by a fix; nothing is committed."""
    hold = holds_of(lake, [day]).get(day)
    if hold is not None and hold.given and hold.fix.after is not None:
        states = {name: state for name, state in hold.fix.after.items() if name.startswith("clean.")}
        return {name: read_rows(lake.committer, state, day) for name, state in states.items()}
    [raw] = _read_raw(lake, [day])
    with PageParser(lake.store, sum(is_parsed(row) for row in raw.fetches)) as parser:
        fitted = clean_raw_day(lake, raw, parser, hold)
    return _frames(lake, dataset_of(lake, day), [(fitted, record_partition(lake, day))])


def _settle(lake: Lake, notes: RunNotes, made: Sequence[tuple[str, SourceDay]], behind: Collection[SourceDay]) -> None:
    """Record the states: those of raw, once the day's books balance."""
    index = PartitionIndex(lake.ledger)
    for day in notes.days:
        info = index.get(Layer.RAW, "raw.fetches", raw_partition(lake, day))
        ended = info is not None and info.state in ENDED_STATES and day not in behind
        failed = day in notes.errors
        notes.states[day] = (
            PartitionState.FAILED if failed else info.state if info is not None and ended else PartitionState.OPEN
        )
    for table, day in made:
        record_state(lake, notes, table, record_partition(lake, day))
