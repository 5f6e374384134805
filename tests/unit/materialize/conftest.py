"""A lake on the local profile whose sources lead to a demo site of this test session's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.demo_site.reply import Reply, html_reply
from infra.demo_site.site import Site
from lakehouse.lake import Lake, open_lake
from lakehouse.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]
QUIET_DAY = "2025-01-01"
BROKEN_DAY = "2025-01-02"


class MoodySite(Site):
    """The demo site, with one day on which nobody wrote a letter, and one whose list is broken for two requests."""

    broken = 2

    def reply(self, target: str, *, counts: bool = True) -> Reply:
        """As the demo site, but for the two days."""
        if target == f"/daily/{QUIET_DAY}/":
            words = "No letters today. " * 40
            return html_reply(f"<html><head><title>Letters</title></head><body><p>{words}</p></body></html>")
        if target == f"/daily/{BROKEN_DAY}/" and self.broken:
            self.broken -= 1
            return html_reply("<html><body>out of ink</body></html>", 503)
        return super().reply(target, counts=counts)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of an empty lake beside a running demo site."""
    with run_site(MoodySite()) as site:
        catalog = copy_catalog(ROOT / "catalog", tmp_path_factory.mktemp("town") / "catalog", site.server_port)
        yield load_settings(home=tmp_path_factory.mktemp("home"), catalog_dir=catalog)


@pytest.fixture(scope="module")
def lake(town: Settings) -> Iterator[Lake]:
    """The open lake."""
    with open_lake(town) as opened:
        yield opened
