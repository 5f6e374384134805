"""The definitions load whole, as Dagster's own code server loads them."""

from __future__ import annotations

import dagster as dg

from assets.build import build_defs
from lakehouse.settings import Settings


def test_all_definitions_can_be_loaded(local_home: Settings) -> None:
    defs = build_defs(local_home)
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    repository.load_all_definitions()
    assert {"raw_clean_feature", "materialize_list", "maintenance"} <= set(repository.job_names)
