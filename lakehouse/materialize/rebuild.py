"""The ledger's index made anew from tables, decisions and objects alone: what `partition_info` and `batch` say.

States follow from the truth: a raw day's from its newest mark and the rows it speaks of, a clean partition's from raw
where its outcomes cover the day's fetches and its books balance, a feature partition's from clean where it is
computed of its rows. What no truth tells, such as when the index was first written, is listed in `NOT_DERIVED`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from lakehouse.lake import Lake
from lakehouse.ledger.index import replace_index
from lakehouse.ledger.partitions import ENDED_STATES, PartitionInfo
from lakehouse.ledger.tasks import TaskState
from lakehouse.materialize.batches import derive_batches
from lakehouse.materialize.days import raw_partition, record_partition
from lakehouse.materialize.feature import ARTICLES, CURRENT, DAILY, FEATURES, feature_partition
from lakehouse.materialize.fixed_tables import record_table
from lakehouse.materialize.holdings import (
    NOTHING,
    Holding,
    computed,
    covered,
    promised_rows,
    read_holdings,
    retired_partitions,
)
from lakehouse.materialize.index import NO_DAY, RunNotes, describe_nothing, indexed_partition, parent_names
from lakehouse.materialize.lineage import record_tables
from lakehouse.materialize.marks import newest_marks, state_by_mark
from lakehouse.materialize.raw import DATASETS, TASK_COLUMNS, judge_lists
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay

NOT_DERIVED = ("created_at", "updated_at", "completed_at")
"""Columns of `partition_info` that say when the index was written."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many rows the index has now."""

    partitions: int
    batches: int


def rebuild(lake: Lake) -> Rebuilt:
    """Make the index anew, all of it or nothing; what other runs write to it meanwhile stays.

    Open tasks of the queue are no index and stay as they are. Raises UnavailableError where a server does not answer.
    """
    began = lake.clock.now_utc()
    partitions, batches = list(derive_partitions(lake)), list(derive_batches(lake))
    replace_index(lake.ledger, partitions, batches, began)
    return Rebuilt(len(partitions), len(batches))


def derive_partitions(lake: Lake, gone: Collection[str] = ()) -> Iterator[PartitionInfo]:
    """The rows of `partition_info` as tables and decisions tell them, by layer; `gone` are data files that are lost."""
    truth = _Truth(lake, gone)
    yield from _raw(truth)
    yield from _clean(truth)
    yield from _feature(truth)


class _Truth:
    """What is read once for all partitions."""

    def __init__(self, lake: Lake, gone: Collection[str]) -> None:
        self.lake = lake
        self.gone = gone
        self.notes = RunNotes(())
        self.marks = newest_marks(lake)
        self.retired = retired_partitions(lake)
        self.states: dict[tuple[str, Partition], PartitionState] = {}
        self._holdings: dict[str, dict[Partition, Holding]] = {}

    def holdings(self, table: str) -> dict[Partition, Holding]:
        if table not in self._holdings:
            self._holdings[table] = read_holdings(self.lake, table)
        return self._holdings[table]

    @cached_property
    def covered(self) -> set[Partition]:
        return covered(self.lake, self.gone)

    @cached_property
    def promised(self) -> Mapping[Partition, int]:
        return promised_rows(self.lake, self.gone)

    @cached_property
    def computed(self) -> set[Partition]:
        return computed(self.lake, ARTICLES, FEATURES, self.gone)

    @cached_property
    def unread_days(self) -> set[SourceDay]:
        """Days of which some list page could not be read."""
        columns = ["source", "dt", *TASK_COLUMNS]
        tasks: dict[SourceDay, list[Mapping[str, object]]] = {}
        for task in self.lake.committer.scan("raw.tasks", None, columns, without=self.gone).to_pylist():
            if task["state"] == TaskState.FAILED or task["kind"] == "list":
                tasks.setdefault(SourceDay(task["source"], task["dt"]), []).append(task)
        return {day for day, some in tasks.items() if judge_lists(some)[1]}

    def info(self, table: str, partition: Partition, state: PartitionState) -> PartitionInfo:
        """The row of one partition; one that retention emptied says so."""
        layer = Layer(table.partition(".")[0])
        holding = self.holdings(table).get(indexed_partition(self.lake, table, partition), NOTHING)
        gone = partition in self.retired.get(layer, ()) and not holding.files
        state = PartitionState.RETIRED if gone else state
        self.states[table, partition] = state
        return replace(
            describe_nothing(self.lake, self.notes, table, partition),
            file_count=holding.files,
            row_count=holding.rows,
            byte_size=holding.bytes,
            checksum=holding.checksum,
            table_snapshot_id=holding.snapshot_id,
            state=state,
            is_active=not gone,
            parents=parent_names(self.lake, table, partition),
        )


def _raw(truth: _Truth) -> Iterator[PartitionInfo]:
    tables = [f"raw.{name}" for name in DATASETS]
    found = {table: set(truth.holdings(table)) | truth.retired.get(Layer.RAW, set()) for table in tables}
    days = sorted({one.day for some in found.values() for one in some})
    for day in days:
        state = _raw_state(truth, day)
        for name, table in zip(DATASETS, tables, strict=True):
            mine = {one for one in found[table] if one.day == day} or {raw_partition(truth.lake, day, name)}
            for partition in sorted(mine):
                yield truth.info(table, partition, state)


def _raw_state(truth: _Truth, day: SourceDay) -> PartitionState:
    rows = {
        name: truth.holdings(f"raw.{name}").get(raw_partition(truth.lake, day, name), NOTHING).rows for name in DATASETS
    }
    state = state_by_mark(truth.marks.get(day), rows)
    if state not in ENDED_STATES and day in truth.unread_days:
        return PartitionState.FAILED
    return state


def _clean(truth: _Truth) -> Iterator[PartitionInfo]:
    lake, retired = truth.lake, truth.retired.get(Layer.CLEAN, set())
    records = record_tables(lake)
    for partition in sorted(set(truth.holdings("clean.outcomes")) | retired):
        mine = [table for table in records if table == _record_table(truth, partition)]
        state = _clean_state(truth, partition, mine)
        for table in ("clean.rejects", "clean.outcomes", *mine):
            yield truth.info(table, partition, state)


def _record_table(truth: _Truth, partition: Partition) -> str | None:
    """The table of records that a partition's source writes; for one that is no longer declared, where its rows are."""
    if partition.source in truth.lake.catalog.sources:
        return record_table(truth.lake, partition.day)
    return next((table for table in record_tables(truth.lake) if partition in truth.holdings(table)), None)


def _clean_state(truth: _Truth, partition: Partition, records: list[str]) -> PartitionState:
    raw = truth.states.get(("raw.fetches", raw_partition(truth.lake, partition.day)))
    rows = sum(truth.holdings(table).get(partition, NOTHING).rows for table in records)
    if raw is PartitionState.RETIRED:
        # Nobody can compare with its fetches any more; retention takes no day that goes on.
        mark = truth.marks.get(partition.day)
        raw, whole = (mark.state if mark else None), truth.promised.get(partition) == rows
    else:
        whole = partition in truth.covered and truth.promised.get(partition) == rows
    return raw if raw in ENDED_STATES and whole else PartitionState.OPEN


def _feature(truth: _Truth) -> Iterator[PartitionInfo]:
    lake = truth.lake
    sources: dict[str, bool] = {}
    for partition in sorted(set(truth.holdings(DAILY)) | truth.retired.get(Layer.FEATURE, set())):
        if partition.source not in lake.catalog.sources:
            continue
        table, record = record_table(lake, partition.day), record_partition(lake, partition.day)
        whole = table != ARTICLES or record in truth.computed or not truth.holdings(table).get(record, NOTHING).rows
        clean = truth.states.get((table, record))
        state = clean if clean in ENDED_STATES and whole else PartitionState.OPEN
        yield truth.info(DAILY, partition, state)
        if table == ARTICLES:
            yield truth.info(FEATURES, feature_partition(lake, FEATURES, partition.day), state)
            sources[partition.source] = sources.get(partition.source, True) and whole
    for name, whole in sources.items():
        current = Partition(name, NO_DAY, lake.catalog.table_schema(CURRENT, None).version)
        yield truth.info(CURRENT, current, PartitionState.COMPLETE if whole else PartitionState.OPEN)
