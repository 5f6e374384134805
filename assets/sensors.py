"""Sensors: the catalog decides which source partitions exist."""

import dagster as dg

from assets.partitions import SOURCES
from lakehouse.settings import Settings
from lakehouse.specs.loader import load_catalog


def define_catalog_sensor(settings: Settings) -> dg.SensorDefinition:
    """Adds a source partition for every source file that has none yet. A source that went away keeps its history."""

    @dg.sensor(
        name="catalog_sources",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="adds partitions for new sources in catalog/sources",
    )
    def catalog_sources(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        known = set(context.instance.get_dynamic_partitions(SOURCES.name or "source"))
        new = sorted(set(load_catalog(settings.catalog_dir).sources) - known)
        if not new:
            return dg.SkipReason(f"all {len(known)} sources have their partitions")
        return dg.SensorResult(dynamic_partitions_requests=[SOURCES.build_add_request(new)])

    return catalog_sources
