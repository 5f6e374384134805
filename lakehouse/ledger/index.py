"""The index as a whole and row by row, for those who mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa

from lakehouse.ledger.batches import BatchRow
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.partitions import ENDED_STATES, PartitionInfo, partition_key, partition_values
from lakehouse.ledger.tables import batch, partition_info


def replace_index(
    ledger: Ledger, partitions: Iterable[PartitionInfo], batches: Iterable[BatchRow], began: datetime
) -> None:
    """Make `partition_info` and `batch` hold these rows, and those that others wrote since `began`."""
    now = ledger.clock.now_utc()
    times = {"created_at": now, "updated_at": now}
    infos = [
        {**partition_values(info), **times, "completed_at": now if info.state in ENDED_STATES else None}
        for info in partitions
    ]
    rows = [_batch_values(one) for one in batches]
    with ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(partition_info.c.updated_at < began))
        changed = sa.func.coalesce(batch.c.committed_at, batch.c.uploaded_at)
        connection.execute(sa.delete(batch).where(changed < began))
        for table, values in ((partition_info, infos), (batch, rows)):
            if values:
                connection.execute(ledger.insert(table).on_conflict_do_nothing(), values)


def write_batch(ledger: Ledger, row: BatchRow) -> None:
    """Write one batch, in place of what is known of it."""
    values = _batch_values(row)
    insert = ledger.insert(batch).values(**values)
    with ledger.write() as connection:
        connection.execute(insert.on_conflict_do_update(index_elements=[batch.c.batch_id], set_=values))


def drop_row(ledger: Ledger, info: PartitionInfo) -> None:
    """Forget one partition."""
    with ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(*partition_key(info.layer, info.table, info.partition)))


def _batch_values(row: BatchRow) -> dict[str, object]:
    values = asdict(row)
    values["object_key"] = values.pop("key")
    return values
