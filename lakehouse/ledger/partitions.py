"""The index of partitions: what each holds, in which table snapshot, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from lakehouse.errors import UnknownNameError
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import partition_info
from lakehouse.model.partition import Layer, Partition, PartitionState

ENDED_STATES = (PartitionState.COMPLETE, PartitionState.EMPTY)


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One row of `partition_info`.

    `table` is the full name (`clean.articles`); `byte_size` is in bytes; `checksum` is the partition's content hash;
    `parents` name the partitions it was made from (`raw.fetches/source=…/dt=…/schema_version=…`). The three times are
    filled by the index: `completed_at` when the state becomes complete or empty.
    """

    layer: Layer
    table: str
    dataset: str
    partition: Partition
    base_path: str
    file_count: int
    row_count: int
    byte_size: int
    state: PartitionState
    checksum: str | None = None
    table_snapshot_id: int | None = None
    parents: tuple[str, ...] = ()
    is_active: bool = True
    file_format: str = "parquet"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None


class PartitionIndex:
    """Reads and writes `partition_info`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def record(self, info: PartitionInfo) -> None:
        """Insert or replace what is known of a partition; keeps its first `created_at`."""
        now = self.ledger.clock.now_utc()
        values = partition_values(info)
        ended = info.state in ENDED_STATES
        insert = self.ledger.insert(partition_info).values(
            **values, created_at=now, updated_at=now, completed_at=now if ended else None
        )
        changed = {name: value for name, value in values.items() if name not in partition_info.primary_key.columns}
        statement = insert.on_conflict_do_update(
            index_elements=list(partition_info.primary_key.columns),
            set_={**changed, "updated_at": now, "completed_at": now if ended else None},
        )
        with self.ledger.write() as connection:
            connection.execute(statement)

    def get(self, layer: Layer, table: str, partition: Partition) -> PartitionInfo | None:
        """What is known of one partition, or None."""
        query = sa.select(partition_info).where(*partition_key(layer, table, partition))
        with self.ledger.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else _info(row)

    def list(
        self,
        layer: Layer | None = None,
        table: str | None = None,
        source: str | None = None,
        dt: date | None = None,
        state: PartitionState | None = None,
    ) -> list[PartitionInfo]:
        """All partitions that fit, ordered by table, source, dt and schema version."""
        columns = partition_info.c
        wanted = {
            columns.layer: layer,
            columns.table_name: table,
            columns.source: source,
            columns.dt: dt,
            columns.state: state,
        }
        query = (
            sa.select(partition_info)
            .where(*(column == value for column, value in wanted.items() if value is not None))
            .order_by(columns.table_name, columns.source, columns.dt, columns.schema_version)
        )
        with self.ledger.read() as connection:
            return [_info(row) for row in connection.execute(query).mappings()]

    def set_state(self, layer: Layer, table: str, partition: Partition, state: PartitionState) -> None:
        """Move a recorded partition to a state; raises UnknownNameError for one that was never recorded."""
        now = self.ledger.clock.now_utc()
        changed: dict[str, Any] = {"state": state, "updated_at": now}
        if state is not PartitionState.RETIRED:
            changed["completed_at"] = now if state in ENDED_STATES else None
        with self.ledger.write() as connection:
            done = connection.execute(
                sa.update(partition_info).where(*partition_key(layer, table, partition)).values(**changed)
            ).rowcount
        if not done:
            raise UnknownNameError(f"{table} has no recorded partition {partition.path}; materialize it first")


def partition_key(layer: Layer, table: str, partition: Partition) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions that one row fits."""
    columns = partition_info.c
    return (
        columns.layer == layer,
        columns.table_name == table,
        columns.source == partition.source,
        columns.dt == partition.dt,
        columns.schema_version == partition.schema_version,
    )


def partition_values(info: PartitionInfo) -> dict[str, Any]:
    """The columns of a row, its times aside."""
    values = asdict(info)
    for name in ("partition", "table", "created_at", "updated_at", "completed_at"):
        del values[name]
    return {
        **values,
        "table_name": info.table,
        "source": info.partition.source,
        "dt": info.partition.dt,
        "schema_version": info.partition.schema_version,
        "parents": list(info.parents),
    }


def _info(row: Mapping[Any, Any]) -> PartitionInfo:
    values = dict(row)
    partition = Partition(values.pop("source"), values.pop("dt"), values.pop("schema_version"))
    values["layer"] = Layer(values["layer"])
    values["state"] = PartitionState(values["state"])
    values["parents"] = tuple(values["parents"])
    return PartitionInfo(table=values.pop("table_name"), partition=partition, **values)
