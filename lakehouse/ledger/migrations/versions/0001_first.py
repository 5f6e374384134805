"""Tasks with their history, rate-limit slots, workers, batches and partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from lakehouse.ledger.tables import Instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the first tables."""
    create_work()
    create_index()


def create_work() -> None:
    """Tables of work in progress."""
    op.create_table(
        "task",
        sa.Column("task_id", sa.String(32), primary_key=True),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("dt", sa.Date, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("run_key", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_fp", sa.String(32), nullable=False),
        sa.Column("parent_task_id", sa.String(32)),
        sa.Column("page_no", sa.Integer, nullable=False),
        sa.Column("entry", sa.JSON, nullable=False),
        sa.Column("memo", sa.JSON, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("not_before", Instant, nullable=False),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", Instant),
        sa.Column("worker_id", sa.String(200)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("ended_at", Instant),
        sa.UniqueConstraint("source", "dt", "name", "run_key", "url_fp", name="task_once_a_run"),
    )
    op.create_index("task_by_day", "task", ["source", "dt", "state", "priority"])
    op.create_index("task_by_page", "task", ["source", "url_fp"])
    op.create_table(
        "task_event",
        sa.Column("event_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("task_id", sa.String(32), sa.ForeignKey("task.task_id"), nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("reason", sa.Text),
    )
    op.create_index("ix_task_event_task_id", "task_event", ["task_id"])
    op.create_table(
        "domain_slot",
        sa.Column("domain", sa.String(300), primary_key=True),
        sa.Column("next_at", Instant, nullable=False),
    )
    op.create_table(
        "worker",
        sa.Column("worker_id", sa.String(200), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", Instant, nullable=False),
        sa.Column("seen_at", Instant, nullable=False),
    )


def create_index() -> None:
    """Tables that index what is stored."""
    op.create_table(
        "batch",
        sa.Column("batch_id", sa.String(32), primary_key=True),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("dt", sa.Date, nullable=False),
        sa.Column("object_key", sa.String(300), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("snapshots", sa.JSON, nullable=False),
        sa.Column("uploaded_at", Instant, nullable=False),
        sa.Column("committed_at", Instant),
    )
    op.create_index("batch_by_state", "batch", ["state", "source", "dt"])
    op.create_table(
        "partition_info",
        sa.Column("layer", sa.String(16), primary_key=True),
        sa.Column("table_name", sa.String(100), primary_key=True),
        sa.Column("source", sa.String(64), primary_key=True),
        sa.Column("dt", sa.Date, primary_key=True),
        sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("base_path", sa.Text, nullable=False),
        sa.Column("file_count", sa.BigInteger, nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("byte_size", sa.BigInteger, nullable=False),
        sa.Column("file_format", sa.String(16), nullable=False),
        sa.Column("checksum", sa.String(64)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_active", sa.Boolean, nullable=False),
        sa.Column("table_snapshot_id", sa.BigInteger),
        sa.Column("parents", sa.JSON, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("completed_at", Instant),
    )
    op.create_index("partition_by_day", "partition_info", ["source", "dt"])


def downgrade() -> None:
    """Drop all tables."""
    for name in ("partition_info", "batch", "worker", "domain_slot", "task_event", "task"):
        op.drop_table(name)
