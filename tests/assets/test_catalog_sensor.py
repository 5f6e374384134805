"""The sensor adds a partition for each declared source, once."""

from __future__ import annotations

import shutil

import dagster as dg
import pytest

from assets.partitions import SOURCES
from lakehouse.errors import CatalogError
from tests.assets.conftest import Deployment


def evaluate(deployment: Deployment) -> dg.SensorResult | dg.SkipReason:
    """One tick of the sensor."""
    sensor = deployment.defs.resolve_sensor_def("catalog_sources")
    result = sensor(dg.build_sensor_context(instance=deployment.instance))
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    return result


def test_new_source_file_becomes_a_partition(deployment: Deployment) -> None:
    sources = deployment.settings.catalog_dir / "sources"
    text = (sources / "demo_daily.yaml").read_text(encoding="utf-8")
    fresh = text.replace("source: demo_daily", "source: demo_fresh").replace("/daily/", "/daily/?fresh=")
    (sources / "demo_fresh.yaml").write_text(fresh, encoding="utf-8")
    result = evaluate(deployment)
    assert isinstance(result, dg.SensorResult)
    [request] = result.dynamic_partitions_requests or []
    assert "demo_fresh" in request.partition_keys
    assert "demo_daily" not in request.partition_keys
    deployment.instance.add_dynamic_partitions(SOURCES.name or "", list(request.partition_keys))
    assert isinstance(evaluate(deployment), dg.SkipReason)


def test_source_that_went_away_keeps_its_partition(deployment: Deployment) -> None:
    (deployment.settings.catalog_dir / "sources" / "demo_daily.yaml").unlink()
    evaluate(deployment)
    assert "demo_daily" in deployment.instance.get_dynamic_partitions(SOURCES.name or "")


def test_broken_catalog_fails_the_tick_with_the_file_named(deployment: Deployment) -> None:
    file = deployment.settings.catalog_dir / "sources" / "demo_daily.yaml"
    file.write_text("source: [", encoding="utf-8")
    with pytest.raises(CatalogError, match=r"demo_daily\.yaml"):
        evaluate(deployment)
    shutil.rmtree(deployment.settings.catalog_dir)
