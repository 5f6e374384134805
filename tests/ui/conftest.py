"""The Dagster UI on the server profile over the demo site, and a real Chromium to use it with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.launcher import Servers
from infra.state import free_port
from lakehouse.fetch.browser import find_browser
from lakehouse.settings import Settings

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
START_SECONDS = 180


@dataclass(frozen=True)
class Ui:
    """A running Dagster UI: its address, the lake behind it, and where screenshots go."""

    address: str
    settings: Settings
    shots: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder as a UI test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ui)


@pytest.fixture(scope="module")
def ui(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """`python -m assets.serve` on the server profile, with sources that lead to a demo site of its own."""
    folder = tmp_path_factory.mktemp("ui")
    shots = ROOT / "test-output" / "ui"
    shots.mkdir(parents=True, exist_ok=True)
    with run_site() as site, (folder / "serve.log").open("wb") as log:
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        settings = servers.settings(catalog_dir=catalog)
        environment = {
            **os.environ,
            **servers.env,
            "LAKEHOUSE_PROFILE": "server",
            "LAKEHOUSE_HOME": str(settings.home),
            "LAKEHOUSE_CATALOG_DIR": str(catalog),
        }
        port = free_port()
        command = [sys.executable, "-m", "assets.serve", "--port", str(port)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_served(address, process, folder / "serve.log")
            yield Ui(address, settings, shots)
        finally:
            process.terminate()
            process.wait(timeout=90)


def wait_until_served(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the UI answers; fail with the log's end where it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    with closing(httpx.Client()) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if client.get(f"{address}/server_info").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                time.sleep(1)
    pytest.fail(f"the Dagster UI did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The Chromium of this machine."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(None),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
        )
        yield browser
        browser.close()
