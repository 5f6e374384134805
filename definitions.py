"""Dagster's entry point: `dagster dev -m definitions`."""

from assets.build import build_defs

defs = build_defs()
