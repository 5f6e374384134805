"""The index of batches: which are uploaded and which tables already hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from lakehouse.errors import UnknownNameError
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import batch


class BatchState(StrEnum):
    """How far a batch has come."""

    UPLOADED = "uploaded"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch: `key` is its object in the store; `counts` are its rows by kind; `snapshots` the table snapshots."""

    batch_id: str
    source: str
    dt: date
    key: str
    state: BatchState
    counts: Mapping[str, int]
    snapshots: Mapping[str, int]
    uploaded_at: datetime
    committed_at: datetime | None


class BatchIndex:
    """Reads and writes `batch`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def register(self, batch_id: str, source: str, dt: date, key: str, counts: Mapping[str, int]) -> None:
        """Note that a batch is stored under `key`; a batch that is already known stays as it is."""
        statement = (
            self.ledger.insert(batch)
            .values(
                batch_id=batch_id,
                source=source,
                dt=dt,
                object_key=key,
                state=BatchState.UPLOADED,
                counts=dict(counts),
                snapshots={},
                uploaded_at=self.ledger.clock.now_utc(),
            )
            .on_conflict_do_nothing()
        )
        with self.ledger.write() as connection:
            connection.execute(statement)

    def uploaded(self, source: str | None = None, dt: date | None = None) -> list[BatchRow]:
        """Batches that are stored and not yet committed, oldest first."""
        return self._list(BatchState.UPLOADED, source, dt)

    def committed(self, source: str | None = None, dt: date | None = None) -> list[BatchRow]:
        """Batches that the tables hold, oldest first."""
        return self._list(BatchState.COMMITTED, source, dt)

    def mark_committed(self, batch_id: str, snapshots: Mapping[str, int]) -> None:
        """Note the table snapshots that hold a batch, by table; raises UnknownNameError for an unknown batch."""
        statement = (
            sa.update(batch)
            .where(batch.c.batch_id == batch_id)
            .values(state=BatchState.COMMITTED, snapshots=dict(snapshots), committed_at=self.ledger.clock.now_utc())
        )
        with self.ledger.write() as connection:
            done = connection.execute(statement).rowcount
        if not done:
            raise UnknownNameError(f"batch {batch_id} is not in the ledger; register it before marking it committed")

    def _list(self, state: BatchState, source: str | None, dt: date | None) -> list[BatchRow]:
        query = sa.select(batch).where(batch.c.state == state).order_by(batch.c.uploaded_at, batch.c.batch_id)
        if source is not None:
            query = query.where(batch.c.source == source)
        if dt is not None:
            query = query.where(batch.c.dt == dt)
        with self.ledger.read() as connection:
            return [_row(row) for row in connection.execute(query).mappings()]


def _row(row: Mapping[Any, Any]) -> BatchRow:
    values = dict(row)
    values["state"] = BatchState(values["state"])
    return BatchRow(key=values.pop("object_key"), **values)
