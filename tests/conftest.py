"""Fixtures that any test may use: settings with a home of their own, and the real servers, started once a session."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from infra import launcher
from infra.launcher import Servers
from lakehouse.settings import WAREHOUSE_BUCKET, Settings, load_settings
from tests.s3_server import S3

ROOT = Path(__file__).parent.parent
started: list[Servers] = []

# A shell starts background jobs with SIGINT ignored; Dagster, once imported, then lets all our children ignore SIGTERM.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on the settings of whoever runs it."""
    for name in list(os.environ):
        if name.startswith("LAKEHOUSE_") and name != "LAKEHOUSE_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture
def local_home(tmp_path: Path) -> Settings:
    """Settings of the local profile with their own empty home and the project's catalog."""
    return load_settings(home=tmp_path / "home", catalog_dir=ROOT / "catalog")


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """PostgreSQL, an S3 server and Trino of this test process, on free ports in one folder; stopped at the end."""
    given = os.environ.get("LAKEHOUSE_TEST_HOME")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    home = Path(given) / f"{worker}-{S3}" if given else Path(tempfile.mkdtemp(prefix="lakehouse-servers-"))
    watch = [sys.executable, "-m", "infra", "down", "--home", str(home), "--after", str(os.getpid())]
    # Stops the servers even if this process is killed; starts first, so that no moment is without it.
    with subprocess.Popen(watch, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True) as watcher:
        try:
            running = launcher.start(home, short_lived=True, s3=S3)
            started.append(running)
            yield running
            started.remove(running)
        finally:
            launcher.stop(home)
            watcher.kill()
    if not given:
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def server_settings(servers: Servers) -> Settings:
    """Settings of the server profile for the session's servers, shared by all tests that ask for them."""
    return servers.settings(catalog_dir=ROOT / "catalog")


@pytest.fixture
def pg_database(servers: Servers) -> Iterator[str]:
    """SQLAlchemy URL of a fresh, empty database that its owner `lakehouse` may use freely."""
    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(servers.admin_database_url(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER lakehouse").format(sql.Identifier(name)))
    base = servers.env["LAKEHOUSE_DATABASE_URL"].rpartition("/")[0]
    yield f"{base}/{name}"
    with psycopg.connect(servers.admin_database_url(), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def fresh_warehouse(servers: Servers) -> str:
    """An `s3://` prefix that nothing has been written to; the pipeline's credentials may write there."""
    return f"s3://{WAREHOUSE_BUCKET}/test/{uuid4().hex}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failed test that used the servers shows the end of their logs."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and "servers" in getattr(item, "fixturenames", ()):
        for running in started:
            for name in running.state.names:
                process = running.process(name)
                report.sections.append((f"log of {process.name}", process.log_tail()))
    return report  # type: ignore[return-value]
