"""Retention: days that a source no longer keeps leave the tables, layer by layer, and their files after a grace period.

The decision is recorded first, then one table snapshot a table drops the rows, then the index says `retired`. The files
are written down with the day from which upkeep may remove them. Not here: pages and batches in the object store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.logs import get_log
from lakehouse.materialize.days import LAYERS
from lakehouse.model.partition import Layer, Partition, PartitionState
from lakehouse.query.locations import read_locations
from lakehouse.tables.columns import arrow_schema
from lakehouse.tables.content import EMPTY_HASH
from lakehouse.tables.decisions import Decision
from lakehouse.tables.producer import all_files
from lakehouse.tables.small_files import hold_files
from lakehouse.tables.split import partition_of
from lakehouse.tables.storage import answering
from lakehouse.tables.upkeep_work import PACKS, mend_current

KIND = "retention"
GRACE = timedelta(days=7)
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Retirement:
    """Rows of one table that retention drops: the days of a source before `before`, with files, rows and bytes."""

    table: str
    source: str
    before: date
    partitions: tuple[Partition, ...]
    files: int
    rows: int
    bytes: int


def retire(lake: Lake, *, grace: timedelta = GRACE, apply: bool = True) -> list[Retirement]:
    """Drop what the sources' declared retention no longer keeps; without `apply` only say what that would be.

    Packs (`raw.snapshots`) stay: they are evidence. Files go with the upkeep after `grace`, once no table snapshot or
    tag needs them. Raises ConflictError where a partition carries delete files, UnavailableError where a server does
    not answer; running again finishes the work.
    """
    found = [one for table in _tables(lake) for one in _due(lake, table)]
    if apply:
        if found:
            lake.decisions.record_all([_decision(lake, one) for one in found])
        for one in found:
            _drop(lake, one, grace)
        if any(_first_days(lake, layer) for layer in LAYERS):
            for table in _tables(lake):
                with answering(table), lake.committer.locks.hold(table):
                    mend_current(lake.committer.table(table))
        _mark_retired(lake)
    for one in found:
        get_log().info("retention", table=one.table, source=one.source, applied=apply, partitions=len(one.partitions))
    return found


def _tables(lake: Lake) -> Iterator[str]:
    """Tables with days, in the order of their layers from the last to the first: nothing outlives what it came from."""
    existing = read_locations(lake.iceberg)
    for layer in reversed(LAYERS):
        for table in lake.catalog.tables():
            spec = lake.catalog.table_schema(table, None)
            if spec.layer is layer and spec.partitioned == "source_dt_version" and table in existing and table != PACKS:
                yield table


def _first_days(lake: Lake, layer: Layer) -> dict[str, date]:
    """The oldest day kept, by source, of those that do not keep all."""
    today = lake.clock.today()
    days = {name: one.retention.first_day(layer, today) for name, one in lake.catalog.sources.items()}
    return {name: day for name, day in days.items() if day is not None}


def _due(lake: Lake, table: str) -> Iterator[Retirement]:
    first_days = _first_days(lake, Layer(table.partition(".")[0]))
    if not first_days:
        return
    with answering(table):
        live = {partition_of(key): files for key, files in all_files(lake.committer.table(table))[0].items()}
    for source, before in sorted(first_days.items()):
        due = sorted(one for one in live if one.source == source and one.dt < before)
        files = [file for one in due for file in live[one]]
        if due:
            rows, size = sum(file.record_count for file in files), sum(file.file_size_in_bytes for file in files)
            yield Retirement(table, source, before, tuple(due), len(files), rows, size)


def _decision(lake: Lake, one: Retirement) -> Decision:
    layer = one.table.partition(".")[0]
    return Decision(
        kind=KIND,
        payload={
            "table": one.table,
            "before": one.before.isoformat(),
            "days": [str(day.dt) for day in one.partitions],
            "versions": [day.schema_version for day in one.partitions],
        },
        dataset=lake.catalog.table_schema(one.table, None).dataset,
        source=one.source,
        dt=one.partitions[-1].dt,
        reason=f"retention of {layer} in catalog/sources/{one.source}.yaml",
    )


def _drop(lake: Lake, one: Retirement, grace: timedelta) -> None:
    """Write down the files and drop the rows, under the table's lock so that no file is missed."""
    nothing = arrow_schema(lake.catalog.table_schema(one.table, None)).empty_table()
    for start in range(0, len(one.partitions), AT_ONCE):
        some = one.partitions[start : start + AT_ONCE]
        with answering(one.table), lake.committer.locks.hold(one.table):
            table = lake.committer.table(one.table)
            live = {partition_of(key): files for key, files in all_files(table)[0].items()}
            files = [file for partition in some for file in live.get(partition, [])]
            now = lake.clock.now_utc()
            hold_files(lake.committer, table, files, now, now + grace)
            lake.committer.replace(one.table, nothing, some)


def _mark_retired(lake: Lake) -> None:
    """Say in the index what is gone, also for partitions that an interrupted run dropped."""
    index = PartitionIndex(lake.ledger)
    for layer in LAYERS:
        for source, before in _first_days(lake, layer).items():
            for info in index.list(layer=layer, source=source):
                if info.partition.dt < before and info.state is not PartitionState.RETIRED and _has_days(lake, info):
                    gone = replace(info, state=PartitionState.RETIRED, is_active=False, checksum=EMPTY_HASH)
                    index.record(replace(gone, file_count=0, row_count=0, byte_size=0, table_snapshot_id=None))


def _has_days(lake: Lake, info: PartitionInfo) -> bool:
    partitioned = lake.catalog.table_schema(info.table, None).partitioned
    return info.table != PACKS and partitioned == "source_dt_version"
