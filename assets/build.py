"""Assembles the Dagster definitions. Belongs here: which parts there are. Not here: what any of them does."""

from __future__ import annotations

import dagster as dg

from assets.jobs import materialize_list_job
from assets.layers import FEATURE_TABLES, RAW_TABLES, clean_tables, define_layer
from assets.maintenance import STEPS, define_nightly, maintenance
from assets.partitions import define_source_days
from assets.resources import define_lake
from assets.sensors import define_catalog_sensor
from lakehouse.settings import Settings, load_settings
from lakehouse.specs.loader import load_catalog


def build_defs(settings: Settings | None = None) -> dg.Definitions:
    """Definitions for `settings`, by default those of the environment."""
    settings = settings or load_settings()
    catalog = load_catalog(settings.catalog_dir)
    partitions = define_source_days(settings.clock, settings.window_days)
    cleaned = clean_tables(catalog)
    return dg.Definitions(
        assets=[
            define_layer("raw", catalog, partitions, RAW_TABLES),
            define_layer("clean", catalog, partitions, cleaned, upstream=RAW_TABLES),
            define_layer("feature", catalog, partitions, FEATURE_TABLES, upstream=cleaned),
            *STEPS,
        ],
        jobs=[
            dg.define_asset_job("raw_clean_feature", selection=dg.AssetSelection.groups("raw", "clean", "feature")),
            materialize_list_job,
            maintenance,
        ],
        schedules=[define_nightly(settings)],
        sensors=[define_catalog_sensor(settings)],
        resources={"lake": define_lake(settings)},
        executor=dg.in_process_executor,
    )
