"""What a run leaves in the ledger's index of partitions and tells its caller of each: size, state, preview."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.lake import Lake
from lakehouse.ledger.partitions import ENDED_STATES, PartitionIndex, PartitionInfo
from lakehouse.materialize.days import LAYERS, dataset_of, raw_partition, record_partition
from lakehouse.materialize.result import PREVIEW_ROWS, PartitionResult
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.tables.columns import PARTITION_COLUMNS
from lakehouse.tables.committer import Commit, PartitionCommit
from lakehouse.tables.content import content_hash

PREVIEW_CHARS = 300
PREVIEW_DAYS = 20
NO_DAY = date(1970, 1, 1)
RAW_PARENTS = ("fetches", "entries")
"""The raw datasets that clean partitions are made from."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is the same for all partitions of a table: where it lies, its columns, and what it is partitioned by."""

    location: str
    columns: tuple[tuple[str, str, str], ...]
    partitioned: tuple[str, ...]
    dataset: str


@dataclass(slots=True)
class RunNotes:
    """What a run knows of its days so far: counts, errors, messages and states by day; `changed` by table and day."""

    days: tuple[SourceDay, ...]
    started: float = field(default_factory=time.perf_counter)
    rows: dict[SourceDay, Mapping[str, int]] = field(default_factory=dict)
    errors: dict[SourceDay, str] = field(default_factory=dict)
    messages: dict[SourceDay, str] = field(default_factory=dict)
    states: dict[SourceDay, PartitionState] = field(default_factory=dict)
    changed: set[tuple[str, SourceDay]] = field(default_factory=set)
    _facts: dict[str, TableFacts] = field(default_factory=dict)

    def facts(self, lake: Lake, table: str) -> TableFacts:
        """Facts of a table, read once a run."""
        if table not in self._facts:
            found, spec = lake.committer.table(table), lake.catalog.table_schema(table, None)
            columns = tuple((column.name, str(column.field_type), column.doc or "") for column in found.schema().fields)
            self._facts[table] = TableFacts(
                found.location(), columns, PARTITION_COLUMNS[spec.partitioned], spec.dataset
            )
        return self._facts[table]

    @property
    def good(self) -> list[SourceDay]:
        """The days without an error."""
        return [day for day in self.days if day not in self.errors]

    def touched(self, day: SourceDay) -> bool:
        """Whether this run committed anything for a day."""
        return any(changed == day for _, changed in self.changed)


def indexed_partition(lake: Lake, table: str, partition: Partition) -> Partition:
    """The partition under its key in the index: tables without days have the fixed day `NO_DAY`."""
    columns = PARTITION_COLUMNS[lake.catalog.table_schema(table, None).partitioned]
    return partition if "dt" in columns else Partition(partition.source, NO_DAY, partition.schema_version)


def record_commit(lake: Lake, notes: RunNotes, commit: Commit, partitions: Sequence[Partition]) -> None:
    """Write the rows of the index as of `commit`; a partition that changed is open until `record_state`."""
    sizes = {done.partition: done for done in commit.partitions}
    if "dt" not in notes.facts(lake, commit.table).partitioned:
        by_source = {done.partition.source: done for done in commit.partitions}
        sizes = {partition: by_source[partition.source] for partition in partitions if partition.source in by_source}
    for partition in partitions:
        size = sizes.get(partition) or _size(lake, commit.table, partition)
        _record(lake, notes, commit, partition, size)


def _record(
    lake: Lake,
    notes: RunNotes,
    commit: Commit,
    partition: Partition,
    size: PartitionCommit,
) -> None:
    index, layer = PartitionIndex(lake.ledger), _layer(commit.table)
    key = indexed_partition(lake, commit.table, partition)
    known = index.get(layer, commit.table, key)
    same = known if known is not None and (known.checksum, known.row_count) == (size.checksum, size.rows) else None
    if commit.changed and same is None and (known is not None or size.rows):
        notes.changed.add((commit.table, partition.day))
    if same is None and layer is Layer.CLEAN:
        reopen_later_layers(lake, partition.day, after=layer)
    info = replace(
        describe_nothing(lake, notes, commit.table, partition),
        file_count=size.files,
        row_count=size.rows,
        byte_size=size.bytes,
        state=same.state if same else PartitionState.OPEN,
        checksum=size.checksum,
        table_snapshot_id=same.table_snapshot_id if same else commit.snapshot_id if size.files else None,
        parents=parent_names(lake, commit.table, partition),
    )
    if same is None or (same.parents, same.file_count) != (info.parents, info.file_count):
        index.record(info)


def record_state(lake: Lake, notes: RunNotes, table: str, partition: Partition) -> None:
    """Write the state of a partition, the last thing a run does.

    A day that failed keeps the state of the rows it still has.
    """
    index, layer = PartitionIndex(lake.ledger), _layer(table)
    key, state = indexed_partition(lake, table, partition), notes.states[partition.day]
    known = index.get(layer, table, key)
    if known is None:
        if state is PartitionState.FAILED:
            index.record(replace(describe_nothing(lake, notes, table, partition), state=state))
        return
    failed_again = state is PartitionState.FAILED and known.state in ENDED_STATES and not notes.touched(partition.day)
    if known.state is not state and not failed_again:
        index.set_state(layer, table, key, state)


def reopen_later_layers(lake: Lake, day: SourceDay, *, after: Layer = Layer.RAW) -> None:
    """Say of a day's partitions in the layers after one that they are behind, before or as that one changes."""
    index, later = PartitionIndex(lake.ledger), LAYERS[LAYERS.index(after) + 1 :]
    infos = [*index.list(source=day.source, dt=day.dt), *index.list(source=day.source, dt=NO_DAY)]
    for info in infos:
        if info.layer in later and info.state in ENDED_STATES:
            index.set_state(info.layer, info.table, info.partition, PartitionState.OPEN)


def describe_nothing(lake: Lake, notes: RunNotes, table: str, partition: Partition) -> PartitionInfo:
    """The row of a partition that holds nothing."""
    facts = notes.facts(lake, table)
    folders = [folder for folder in partition.path.split("/") if folder.partition("=")[0] in facts.partitioned]
    return PartitionInfo(
        layer=_layer(table),
        table=table,
        dataset=facts.dataset,
        partition=indexed_partition(lake, table, partition),
        base_path="/".join([facts.location, "data", *folders]),
        file_count=0,
        row_count=0,
        byte_size=0,
        state=PartitionState.OPEN,
    )


def partition_name(table: str, partition: Partition) -> str:
    """How a partition is named as a parent of another: `<table>/<path>`."""
    return f"{table}/{partition.path}"


def parent_names(lake: Lake, table: str, partition: Partition) -> tuple[str, ...]:
    """The partitions that one is made from, by name: clean from raw, features from clean records.

    Raw is made from none, and a table over all days names none.
    """
    layer, day = _layer(table), partition.day
    if layer is Layer.CLEAN:
        return tuple(partition_name(f"raw.{name}", raw_partition(lake, day, name)) for name in RAW_PARENTS)
    if layer is Layer.RAW or indexed_partition(lake, table, partition).dt == NO_DAY:
        return ()
    record = lake.catalog.schema(dataset_of(lake, day), None).table
    return (partition_name(record, record_partition(lake, day)),)


def content_mark(lake: Lake, table: str, partition: Partition) -> str:
    """A partition with the content that it has by the index: `<table>/<path>#<checksum>`."""
    known = PartitionIndex(lake.ledger).get(_layer(table), table, indexed_partition(lake, table, partition))
    return f"{partition_name(table, partition)}#{(known.checksum if known else None) or ''}"


def describe_partition(
    lake: Lake, notes: RunNotes, table: str, partition: Partition, frame: pa.Table | None = None
) -> PartitionResult:
    """The result of one table and day; the preview is of `frame`, else read from the table in a run of few days."""
    day = partition.day
    key = indexed_partition(lake, table, partition)
    info = PartitionIndex(lake.ledger).get(_layer(table), table, key)
    rows = _rows_of(frame, key) if frame is not None else None
    if rows is None and info is not None and info.row_count and len(notes.days) <= PREVIEW_DAYS:
        rows = lake.committer.scan(table, [partition])
    return PartitionResult(
        table=table,
        partition=partition,
        state=PartitionState.FAILED if day in notes.errors else notes.states.get(day, PartitionState.OPEN),
        changed=(table, day) in notes.changed,
        snapshot_id=info.table_snapshot_id if info else None,
        rows=notes.rows.get(day, {}),
        columns=notes.facts(lake, table).columns,
        uri=info.base_path if info else "",
        preview=_preview(rows),
        error=notes.errors.get(day),
        row_count=info.row_count if info else 0,
        message=notes.messages.get(day, ""),
        elapsed=round(time.perf_counter() - notes.started, 3),
    )


def _layer(table: str) -> Layer:
    return Layer(table.partition(".")[0])


def _size(lake: Lake, table: str, partition: Partition) -> PartitionCommit:
    """A partition that a commit did not name, as the table has it."""
    files = lake.committer.files(table, partition)
    checksum = content_hash(lake.committer.scan(table, [partition]))
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    return PartitionCommit(partition, rows, len(files), size, checksum)


def _rows_of(frame: pa.Table, key: Partition) -> pa.Table:
    wanted = pc.equal(frame["source"], key.source)
    if key.dt != NO_DAY:
        wanted = pc.and_(wanted, pc.equal(frame["dt"], pa.scalar(key.dt)))
    return frame.filter(wanted)


def _preview(frame: pa.Table | None) -> list[dict[str, Any]]:
    if frame is None:
        return []
    rows = frame.slice(0, PREVIEW_ROWS).to_pylist()
    return [{name: _short(value) for name, value in row.items() if value is not None} for row in rows]


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > PREVIEW_CHARS:
        return value[: PREVIEW_CHARS - 1] + "…"
    return value
