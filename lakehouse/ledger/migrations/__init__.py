"""Alembic migrations of the ledger; `Ledger.open` runs them."""
