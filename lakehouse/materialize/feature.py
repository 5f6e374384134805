"""Feature partitions: computed from clean rows and books; what looks across days reads all days of a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakehouse.clean import article_features, articles_current, source_daily
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import ENDED_STATES, PartitionIndex
from lakehouse.materialize.days import checked_days, dataset_of, days_by_dataset, raw_partition, record_partition
from lakehouse.materialize.index import RunNotes, describe_partition, record_commit, record_state
from lakehouse.materialize.result import PartitionResult, ProgressSink, ignore_progress
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.specs.base import split_ref
from lakehouse.tables.effective import current
from lakehouse.tables.normalize import to_arrow

ARTICLES = "clean.articles"
FEATURES, CURRENT, DAILY = "feature.articles", "feature.articles_current", "feature.source_daily"
ROUNDS = 3

Rows = list[dict[str, Any]]


def materialize_feature(
    lake: Lake, days: Iterable[SourceDay], progress: ProgressSink | None = None
) -> list[PartitionResult]:
    """Replace the days' partitions of the feature tables, one commit a table for all days.

    `feature.articles_current` is made anew for each source of the days from the effective rows of all of its days.
    One result a table and day. Raises ConfigError for a day to come, UnknownNameError for an unknown source,
    UnavailableError where the tables do not answer.
    """
    say = progress or ignore_progress
    notes = RunNotes(checked_days(lake, days, Layer.FEATURE))
    frames: dict[tuple[str, SourceDay], pa.Table] = {}
    waiting = list(notes.days)
    for _ in range(ROUNDS):
        marks = {source: _clean_marks(lake, source) for source in {day.source for day in waiting}}
        frames |= _make_features(lake, notes, waiting, say)
        # A run beside this one may have replaced clean rows, and features of them, before this run committed.
        moved = {source for source, mark in marks.items() if _clean_marks(lake, source) != mark}
        waiting = [day for day in waiting if day.source in moved]
        if not waiting:
            break
    _settle(lake, notes, list(frames), waiting)
    return [
        describe_partition(lake, notes, table, feature_partition(lake, table, day), frame)
        for (table, day), frame in frames.items()
    ]


def _make_features(
    lake: Lake, notes: RunNotes, days: Sequence[SourceDay], say: ProgressSink
) -> dict[tuple[str, SourceDay], pa.Table]:
    """Compute and replace the partitions of some days; gives each table's frame by table and day."""
    clean: dict[SourceDay, Rows] = {}
    for dataset, group in days_by_dataset(lake, days).items():
        partitions = [record_partition(lake, day) for day in group]
        clean |= _by_day(lake.committer.scan(lake.catalog.schema(dataset, None).table, partitions).to_pylist())
    articles = [day for day in days if dataset_of(lake, day) == "articles"]
    say(f"computing features of {sum(len(clean.get(day, [])) for day in articles)} articles")
    features = article_features(row for day in articles for row in clean.get(day, []))
    newest = [row for source in sorted({day.source for day in articles}) for row in _current_rows(lake, source)]
    daily = _daily_rows(lake, notes, days, clean)
    wanted = ((FEATURES, features, articles), (CURRENT, newest, articles), (DAILY, daily, list(days)))
    found: dict[tuple[str, SourceDay], pa.Table] = {}
    for table, rows, group in wanted:
        frame = _replace(lake, notes, table, rows, group)
        found |= {(table, day): frame for day in group}
    return found


def refresh_current(lake: Lake, day: SourceDay) -> None:
    """Make `feature.articles_current` of the day's source anew from the effective rows of all of its days."""
    if dataset_of(lake, day) == "articles":
        notes = RunNotes((day,))
        _replace(lake, notes, CURRENT, _current_rows(lake, day.source), [day])
        _settle(lake, notes, [(CURRENT, day)], ())


def feature_tables(lake: Lake, day: SourceDay) -> tuple[str, ...]:
    """The feature tables that have a partition of a day."""
    return (FEATURES, DAILY) if dataset_of(lake, day) == "articles" else (DAILY,)


def settle_features(lake: Lake, day: SourceDay) -> None:
    """Say of a day's features, brought to the rows of the clean partition from elsewhere, that they are as far."""
    _settle(lake, RunNotes((day,)), [(table, day) for table in feature_tables(lake, day)], ())


def _clean_marks(lake: Lake, source: str) -> list[tuple[str, Partition, str | None]]:
    """All clean partitions of a source, with the content they have by the index."""
    infos = PartitionIndex(lake.ledger).list(Layer.CLEAN, source=source)
    return [(info.table, info.partition, info.checksum) for info in infos]


def feature_partition(lake: Lake, table: str, day: SourceDay) -> Partition:
    """The feature partition of a day; feature tables have schema versions of their own."""
    return Partition(day.source, day.dt, lake.catalog.table_schema(table, None).version)


def _by_day(rows: Rows) -> dict[SourceDay, Rows]:
    found: dict[SourceDay, Rows] = {}
    for row in rows:
        found.setdefault(SourceDay(row["source"], row["dt"]), []).append(row)
    return found


def _current_rows(lake: Lake, source: str) -> Rows:
    """The newest revisions of a source's pages, over the effective versions of all of its days."""
    pointers = [
        pointer
        for (dataset, name, _), pointer in current(lake.committer).items()
        if (dataset, name) == ("articles", source)
    ]
    partitions = [Partition(pointer.source, pointer.dt, pointer.schema_version) for pointer in pointers]
    rows = lake.committer.scan(ARTICLES, partitions).to_pylist() if partitions else []
    names = {field.name for field in lake.catalog.table_schema(CURRENT, None).fields} | {"source", "dt"}
    return [{name: value for name, value in row.items() if name in names} for row in articles_current(rows)]


def _daily_rows(lake: Lake, notes: RunNotes, days: Sequence[SourceDay], clean: Mapping[SourceDay, Rows]) -> Rows:
    """The rows of `feature.source_daily`, in the order of the days."""
    records = [record_partition(lake, day) for day in days]
    outcomes = _by_day(lake.committer.scan("clean.outcomes", records).to_pylist())
    raw = [raw_partition(lake, day) for day in days]
    columns = ["source", "dt", "collect_time", "body_bytes", "elapsed_ms"]
    fetches = _by_day(lake.committer.scan("raw.fetches", raw, columns).to_pylist())
    lists = [raw_partition(lake, day, "entries") for day in days]
    entries = _by_day(lake.committer.scan("raw.entries", lists, ["source", "dt"]).to_pylist())
    rows = []
    for day in days:
        entered = outcomes.get(day, [])
        notes.rows[day] = dict(Counter(row["outcome"] for row in entered))
        dataset, version = split_ref(lake.catalog.source(day.source).writes)
        rows.append(
            source_daily(
                {"source": day.source, "dt": day.dt, "dataset": dataset},
                fetches=fetches.get(day, []),
                outcomes=entered,
                rows=clean.get(day, []),
                entries=len(entries.get(day, [])),
                fields=[field.name for field in lake.catalog.schema(dataset, version).fields],
            )
        )
    return rows


def _replace(lake: Lake, notes: RunNotes, table: str, rows: Rows, days: Sequence[SourceDay]) -> pa.Table:
    """Replace the days' partitions of one feature table and note it in the index; gives the frame."""
    spec = lake.catalog.table_schema(table, None)
    frame = to_arrow([{**row, "schema_version": spec.version} for row in rows], spec)
    partitions = [feature_partition(lake, table, day) for day in days]
    if not partitions:
        return frame
    commit = lake.committer.replace(table, frame, partitions)
    record_commit(lake, notes, commit, partitions)
    return frame


def _settle(lake: Lake, notes: RunNotes, made: Sequence[tuple[str, SourceDay]], behind: Collection[SourceDay]) -> None:
    """Record the states: those of the clean partitions; what looks across days is complete unless it is behind."""
    for day in notes.days:
        table = lake.catalog.schema(dataset_of(lake, day), None).table
        info = PartitionIndex(lake.ledger).get(Layer.CLEAN, table, record_partition(lake, day))
        ended = info is not None and info.state in ENDED_STATES and day not in behind
        notes.states[day] = info.state if info is not None and ended else PartitionState.OPEN
    for table, day in made:
        if table != CURRENT:
            record_state(lake, notes, table, feature_partition(lake, table, day))
    for day in {day.source: day for table, day in made if table == CURRENT}.values():
        state = PartitionState.OPEN if day in behind else PartitionState.COMPLETE
        record_state(lake, replace(notes, states={day: state}), CURRENT, feature_partition(lake, CURRENT, day))
