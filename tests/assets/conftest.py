"""Dagster in process, on a local lake whose sources lead to a demo site of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from assets.build import build_defs
from assets.partitions import SOURCES
from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Deployment:
    """Definitions, an instance that knows the demo's sources, and the settings behind both."""

    defs: dg.Definitions
    instance: dg.DagsterInstance
    settings: Settings


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A fresh lake, a fresh Dagster instance and a running demo site."""
    with run_site() as site, dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        catalog = copy_catalog(ROOT / "catalog", tmp_path / "catalog", site.server_port)
        settings = load_settings(home=tmp_path / "home", catalog_dir=catalog)
        instance.add_dynamic_partitions(SOURCES.name or "", ["demo_daily", "demo_gazette"])
        yield Deployment(build_defs(settings), instance, settings)
