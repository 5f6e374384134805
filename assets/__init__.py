"""Orchestration: what Dagster runs when, and what it shows. The work itself is done by `lakehouse`."""
