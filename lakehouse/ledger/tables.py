"""The ledger's tables. The migrations say the same; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

metadata = MetaData()


class Instant(TypeDecorator[datetime]):
    """An aware instant: `timestamptz` on PostgreSQL, UTC text on SQLite; always read back in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the ledger stores aware instants only, got a naive one")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        instant: datetime = value
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


task = Table(
    "task",
    metadata,
    Column("task_id", String(32), primary_key=True),
    Column("source", String(64), nullable=False),
    Column("dt", Date, nullable=False),
    Column("name", String(64), nullable=False),
    Column("run_key", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("url", Text, nullable=False),
    Column("url_fp", String(32), nullable=False),
    Column("parent_task_id", String(32)),
    Column("page_no", Integer, nullable=False),
    Column("entry", JSON, nullable=False),
    Column("memo", JSON, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text),
    Column("attempts", Integer, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("lease_owner", String(200)),
    Column("lease_until", Instant),
    Column("worker_id", String(200)),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    UniqueConstraint("source", "dt", "name", "run_key", "url_fp", name="task_once_a_run"),
    Index("task_by_day", "source", "dt", "state", "priority"),
    Index("task_by_page", "source", "url_fp"),
)

task_event = Table(
    "task_event",
    metadata,
    Column("event_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("task_id", String(32), ForeignKey("task.task_id"), nullable=False, index=True),
    Column("at", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("worker", String(200)),
    Column("reason", Text),
)

domain_slot = Table(
    "domain_slot",
    metadata,
    Column("domain", String(300), primary_key=True),
    Column("next_at", Instant, nullable=False),
)

worker = Table(
    "worker",
    metadata,
    Column("worker_id", String(200), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
)

batch = Table(
    "batch",
    metadata,
    Column("batch_id", String(32), primary_key=True),
    Column("source", String(64), nullable=False),
    Column("dt", Date, nullable=False),
    Column("object_key", String(300), nullable=False),
    Column("state", String(16), nullable=False),
    Column("counts", JSON, nullable=False),
    Column("snapshots", JSON, nullable=False),
    Column("uploaded_at", Instant, nullable=False),
    Column("committed_at", Instant),
    Index("batch_by_state", "state", "source", "dt"),
)

partition_info = Table(
    "partition_info",
    metadata,
    Column("layer", String(16), primary_key=True),
    Column("table_name", String(100), primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("dt", Date, primary_key=True),
    Column("schema_version", Integer, primary_key=True, autoincrement=False),
    Column("dataset", String(64), nullable=False),
    Column("base_path", Text, nullable=False),
    Column("file_count", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    Column("file_format", String(16), nullable=False),
    Column("checksum", String(64)),
    Column("state", String(16), nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("table_snapshot_id", BigInteger),
    Column("parents", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("completed_at", Instant),
    Index("partition_by_day", "source", "dt"),
)
