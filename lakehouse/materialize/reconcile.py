"""Catalog, ledger, tables and objects compared: everything that one says and another does not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from lakehouse.errors import DataError
from lakehouse.lake import Lake
from lakehouse.ledger.batches import BatchIndex, BatchRow
from lakehouse.ledger.index import drop_row, write_batch
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo, partition_values
from lakehouse.materialize.batches import derive_batches
from lakehouse.materialize.books import audit_all_books
from lakehouse.materialize.expected import completeness
from lakehouse.materialize.findings import Finding, Kind
from lakehouse.materialize.holdings import read_holdings, retired_partitions
from lakehouse.materialize.index import NO_DAY
from lakehouse.materialize.rebuild import derive_partitions
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.query.locations import read_locations
from lakehouse.tables.effective import current, decided_pointers, rebuild_effective
from lakehouse.tables.garbage import logged_metadata, orphans
from lakehouse.tables.reach import Kind as FileKind
from lakehouse.tables.recovery import Act, plan_recovery, recover
from lakehouse.tables.storage import answering
from lakehouse.tables.upkeep_work import open_work

DAY_IN_PATH = re.compile(r"/source=(?P<source>[a-z0-9_]+)/dt=(?P<dt>[0-9-]{10})/")
SAMPLE = 200
YOUNG = timedelta(days=1)
PAGE_COLUMNS = ["source", "dt", "fetch_id", "snap_key", "rendered_key"]


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is looked at: pages of a random sample of rows, or all of them; the last `days` days for schedules."""

    sample: int | None = SAMPLE
    days: int = 7


def reconcile(lake: Lake, scope: Scope | None = None) -> Iterator[Finding]:
    """Everything that does not fit, one finding a thing. Raises UnavailableError where a server does not answer.

    A day of which a data file is gone is named by that file alone: what follows from the loss is not told again.
    """
    scope, lost = scope or Scope(), _Lost()
    yield from _catalog(lake)
    for one in _files(lake):
        lost.note(one)
        yield one
    yield from _index(lake, lost)
    yield from _batches(lake, lost)
    yield from _pages(lake, lost, scope.sample)
    yield from _books(lake, lost)
    yield from _pointers(lake)
    yield from _days(lake, scope.days)


class _Lost:
    """Data files that are gone, and the days that they are of."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.days: set[SourceDay] = set()

    def touches(self, partition: Partition) -> bool:
        """Whether a partition, or one over all days, is of a day with a loss."""
        if partition.dt == NO_DAY:
            return partition.source in {day.source for day in self.days}
        return partition.day in self.days

    def note(self, one: Finding) -> None:
        found = DAY_IN_PATH.search(one.subject)
        if one.kind is Kind.FILE_MISSING:
            self.files.add(one.subject)
            if found is not None:
                self.days.add(SourceDay(found["source"], date.fromisoformat(found["dt"])))


def _catalog(lake: Lake) -> Iterator[Finding]:
    with answering("the warehouse"):
        plans = plan_recovery(lake.iceberg)
    for plan in plans:
        if plan.act is not Act.NOTHING:
            mend = None if plan.act is Act.UNDECIDED else partial(recover, lake.iceberg, lake.committer.locks, plan)
            yield Finding(Kind.CATALOG_BEHIND, plan.table, plan.why, mend)


def _files(lake: Lake) -> Iterator[Finding]:
    for table in sorted(read_locations(lake.iceberg)):
        with answering(table):
            yield from _files_of(lake, table)


def _files_of(lake: Lake, table: str) -> Iterator[Finding]:
    """Files that the table needs and does not have, and files in its folder that nothing knows."""
    work = open_work(lake.committer, table, lake.clock.now_utc())
    work.reload()
    stored = list(work.files.list(work.folder))
    there = {one.path for one in stored}
    try:
        reached = work.reader.files(work.table.metadata)
    except DataError as error:
        yield Finding(Kind.FILE_MISSING, table, str(error))
        return
    for one in reached.values():
        if one.kind is not FileKind.STATISTICS and one.path not in there and not work.files.exists(one.path):
            yield Finding(Kind.FILE_MISSING, one.path, f"{one.kind} file of {table}")
    for path in sorted(path for path in work.held_back if path.startswith(f"{work.folder}/") and path not in there):
        yield Finding(Kind.FILE_MISSING, path, f"old file of {table}, kept for a fix")
    listed = {file.path for found in work.waiting for file in found.files}
    known = {*reached, *work.held_back, *logged_metadata(work.table), *listed}
    for one in work.own(orphans(stored, known, work.now - YOUNG)).values():
        yield Finding(Kind.FILE_UNKNOWN, one.path, f"{one.kind} file of {table}, {one.bytes:,} bytes")


def _index(lake: Lake, lost: _Lost) -> Iterator[Finding]:
    index = PartitionIndex(lake.ledger)
    known = {_key(info): info for info in index.list()}
    derived = {_key(info): info for info in derive_partitions(lake, lost.files)}
    for key, info in derived.items():
        mend = partial(index.record, info)
        if key not in known:
            yield Finding(Kind.INDEX_ROW_MISSING, _name(info), f"{info.row_count} rows, {info.state}", mend)
        elif not lost.touches(info.partition) and (said := _differences(known[key], info)):
            yield Finding(Kind.INDEX_ROW_WRONG, _name(info), said, mend)
    for key, info in known.items():
        # A day that failed before it had any row is known to the ledger alone.
        if key not in derived and info.state is not PartitionState.FAILED:
            yield Finding(
                Kind.INDEX_ROW_STRAY, _name(info), f"{info.row_count} rows", partial(drop_row, lake.ledger, info)
            )


def _key(info: PartitionInfo) -> tuple[str, Partition]:
    return info.table, info.partition


def _name(info: PartitionInfo) -> str:
    return f"{info.table}/{info.partition.path}"


def _differences(known: PartitionInfo, derived: PartitionInfo) -> str:
    """What the index says differently; a failure is a fact of a run, which no table tells."""
    said, true = partition_values(known), partition_values(derived)
    if known.state is PartitionState.FAILED and derived.state is PartitionState.OPEN:
        said["state"] = true["state"]
    return "; ".join(f"{name} is {said[name]}, should be {true[name]}" for name in said if said[name] != true[name])


def _batches(lake: Lake, lost: _Lost) -> Iterator[Finding]:
    index = BatchIndex(lake.ledger)
    known = {row.batch_id: row for row in [*index.uploaded(), *index.committed()]}
    derived = {row.batch_id: row for row in derive_batches(lake, lost.files)}
    for name, row in derived.items():
        mend = partial(write_batch, lake.ledger, row)
        if name not in known:
            yield Finding(Kind.BATCH_MISSING, row.key, f"{row.state}", mend)
        elif _facts(known[name]) != _facts(row) and SourceDay(row.source, row.dt) not in lost.days:
            yield Finding(Kind.BATCH_WRONG, row.key, f"is {known[name].state}, should be {row.state}", mend)
    for name in known.keys() - derived.keys():
        yield Finding(Kind.BATCH_STRAY, known[name].key, f"{known[name].state}")


def _facts(row: BatchRow) -> tuple[str, Mapping[str, int]]:
    return row.state, dict(row.counts)


def _pages(lake: Lake, lost: _Lost, sample: int | None) -> Iterator[Finding]:
    """Pages behind rows: a sample is asked for one by one; for all of them the store is listed once."""
    rows = lake.committer.scan("raw.fetches", None, PAGE_COLUMNS, without=lost.files)
    if sample is not None:
        chosen = sorted(random.sample(range(rows.num_rows), min(sample, rows.num_rows)))
        for row in rows.take(pa.array(chosen, pa.int64())).to_pylist():
            for key in _keys(row):
                if lake.store.head(key) is None:
                    yield Finding(Kind.PAGE_MISSING, key, _row_name(row))
        return
    stored = {info.key: info for info in lake.store.list("snap/")}
    wanted = {key: row for row in rows.to_pylist() for key in _keys(row)}
    for key in sorted(wanted.keys() - stored.keys()):
        yield Finding(Kind.PAGE_MISSING, key, _row_name(wanted[key]))
    young = lake.clock.now_utc() - YOUNG
    gone = {one.source for one in retired_partitions(lake).get(Layer.RAW, ())}
    for key in sorted(stored.keys() - wanted.keys()):
        if stored[key].modified < young and key.split("/")[1] not in gone and not lost.days:
            yield Finding(Kind.PAGE_UNKNOWN, key, f"{stored[key].size:,} bytes")


def _keys(row: Mapping[str, Any]) -> list[str]:
    return [row[name] for name in ("snap_key", "rendered_key") if row[name]]


def _row_name(row: Mapping[str, Any]) -> str:
    return f"fetch {row['fetch_id']} of {row['source']}|{row['dt']}"


def _books(lake: Lake, lost: _Lost) -> Iterator[Finding]:
    for day in audit_all_books(lake, lost.files).days:
        if day.cleaned and day.problems and SourceDay(day.source, day.dt) not in lost.days:
            yield Finding(Kind.BOOKS_UNBALANCED, f"{day.source}|{day.dt}", "; ".join(day.problems))


def _pointers(lake: Lake) -> Iterator[Finding]:
    pointers = current(lake.committer)
    if pointers != decided_pointers(lake.decisions):
        mend = partial(rebuild_effective, lake.committer, lake.decisions)
        yield Finding(Kind.POINTERS_DIFFER, "meta.effective", f"{len(pointers)} pointers", mend)
    outcomes = set(read_holdings(lake, "clean.outcomes"))
    retired = retired_partitions(lake).get(Layer.CLEAN, set())
    for pointer in pointers.values():
        partition = Partition(pointer.source, pointer.dt, pointer.schema_version)
        if partition not in outcomes | retired:
            yield Finding(
                Kind.POINTER_TO_NOTHING, f"{pointer.dataset}/{partition.path}", f"fix {pointer.fix_id or '-'}"
            )


def _days(lake: Lake, days: int) -> Iterator[Finding]:
    for one in completeness(lake, days):
        if one.first is None:
            yield Finding(Kind.SOURCE_SILENT, one.source)
        for day in one.missing:
            yield Finding(Kind.DAY_MISSING, f"{one.source}|{day}")
        for day in one.unfinished:
            yield Finding(Kind.DAY_UNFINISHED, f"{one.source}|{day}")
