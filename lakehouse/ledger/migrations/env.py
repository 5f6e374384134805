"""Alembic's entry point: runs the migrations on the connection that `Ledger.open` hands over."""

from __future__ import annotations

from alembic import context

from lakehouse.ledger.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
