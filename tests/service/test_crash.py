"""A process that dies at any point of the main job: running again gives the tables of an undisturbed run.

Ids and clock times aside. Each run is a process of its own that kills itself with SIGKILL (see `killed.py`), on both
profiles, against the demo site.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg import sql

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.launcher import Servers
from lakehouse.lake import open_lake
from lakehouse.settings import Settings, load_settings
from tests.service.killed import POINTS

ROOT = Path(__file__).parents[2]
NAMED = (
    "after upload, before commit",
    "after the commit of raw.tasks, before raw.entries",
    "after commit, before the ledger",
)
VOLATILE = {
    *("fetch_id", "batch_id", "task_id", "parent_task_id", "worker_id", "decision_id", "snap_key", "rendered_key"),
    *("collect_time", "created_at", "ended_at", "decided_at", "first_collect_time", "last_collect_time"),
    *("history", "elapsed_ms", "mean_elapsed_ms"),
}
TABLES = (
    *("raw.fetches", "raw.entries", "raw.tasks", "clean.articles", "clean.rejects", "clean.outcomes"),
    *("feature.articles", "feature.articles_current", "feature.source_daily", "meta.decisions", "meta.effective"),
)
Contents = dict[str, list[str]]


@dataclass(frozen=True)
class Place:
    """Where lakes of one profile are made: `fresh()` gives settings for an empty one."""

    site: str
    fresh: Callable[[], Settings]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The demo site, and a catalog that leads to it and finds some of its articles too short."""
    with run_site() as server:
        catalog = copy_catalog(ROOT / "catalog", tmp_path_factory.mktemp("catalog") / "catalog", server.server_port)
        checks = catalog / "checks" / "default.yaml"
        text = checks.read_text()
        assert "min: 201" in text
        checks.write_text(text.replace("min: 201", "min: 400"))
        yield server.url, catalog


@pytest.fixture(scope="module", params=["local", "server"])
def place(
    request: pytest.FixtureRequest, site: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Both profiles."""
    url, catalog = site
    if request.param == "local":
        yield Place(url, lambda: load_settings(home=tmp_path_factory.mktemp("home"), catalog_dir=catalog))
        return
    servers: Servers = request.getfixturevalue("servers")
    made: list[str] = []

    def fresh() -> Settings:
        name = f"crash_{uuid4().hex[:12]}"
        with psycopg.connect(servers.admin_database_url(), autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {} OWNER lakehouse").format(sql.Identifier(name)))
        made.append(name)
        base = servers.env["LAKEHOUSE_DATABASE_URL"].rpartition("/")[0]
        return servers.settings(
            catalog_dir=catalog,
            home=tmp_path_factory.mktemp("home"),
            database_url=f"{base}/{name}",
            iceberg_url=f"{base}/{name}",
            warehouse=f"s3://lakehouse-warehouse/test/{name}",
        )

    yield Place(url, fresh)
    for name in made:
        with psycopg.connect(servers.admin_database_url(), autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make another process use these settings."""
    values = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LAKEHOUSE_LOG_LEVEL": "WARNING"}
    for name, value in settings:
        if value is not None:
            plain = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
            values.setdefault(f"LAKEHOUSE_{name.upper()}", plain)
    return values


def run_job(settings: Settings, point: str | None = None) -> int:
    """The main job in a process of its own; gives its exit code, negative for a signal."""
    today = settings.clock.today()
    days = [("demo_gazette", today), ("demo_daily", today - timedelta(days=1)), ("demo_daily", today)]
    job = {"days": [(source, day.isoformat()) for source, day in days], "point": point}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed.py")), json.dumps(job)],
        env=environment(settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), f"{point}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.returncode


def forget_reads(place: Place) -> None:
    """Let the site answer as it answered at first."""
    httpx.post(f"{place.site}/_reset").raise_for_status()


def contents(settings: Settings) -> Contents:
    """All rows of all tables without ids and clock times, sorted."""
    with open_lake(settings) as lake:
        return {
            table: sorted(json.dumps(settled(row), default=str, sort_keys=True, ensure_ascii=False) for row in rows)
            for table in TABLES
            for rows in [lake.committer.scan(table).to_pylist()]
        }


def settled(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what differs from run to run."""
    kept = {name: value for name, value in row.items() if name not in VOLATILE}
    if "response_headers" in kept:
        kept["response_headers"] = [pair for pair in kept["response_headers"] or [] if pair[0] != "date"]
    if isinstance(kept.get("row"), str):
        kept["row"] = settled(json.loads(kept["row"]))
    return kept


def snapshots(settings: Settings) -> dict[str, int | None]:
    """The current table snapshot of every table."""
    with open_lake(settings) as lake:
        return {table: lake.committer.table(table).metadata.current_snapshot_id for table in TABLES}


@pytest.fixture(scope="module")
def undisturbed(place: Place) -> Contents:
    """The tables of a run that nobody disturbed."""
    forget_reads(place)
    settings = place.fresh()
    assert run_job(settings) == 0
    found = contents(settings)
    sizes = {table: len(rows) for table, rows in found.items()}
    assert min(sizes.values()) > 0, sizes
    return found


def assert_same(found: Contents, expected: Contents, when: str) -> None:
    """Equal tables; names the first rows that differ."""
    for table in TABLES:
        lost = [row for row in expected[table] if row not in found[table]]
        more = [row for row in found[table] if row not in expected[table]]
        assert found[table] == expected[table], f"{when}: {table} lacks {lost[:2]}, has {more[:2]}"


@pytest.mark.parametrize("point", NAMED)
def test_running_again_after_a_kill_gives_the_undisturbed_tables(
    place: Place, undisturbed: Contents, point: str
) -> None:
    forget_reads(place)
    settings = place.fresh()
    assert run_job(settings, point) == -signal.SIGKILL
    assert run_job(settings) == 0
    assert_same(contents(settings), undisturbed, point)


@pytest.mark.timeout(1800)
def test_dying_at_every_point_in_turn_gives_the_undisturbed_tables(place: Place, undisturbed: Contents) -> None:
    forget_reads(place)
    settings = place.fresh()
    for point in POINTS:
        assert run_job(settings, point) == -signal.SIGKILL, f"the job never came to the point: {point}"
    assert run_job(settings) == 0
    assert_same(contents(settings), undisturbed, "after all points")
    before = snapshots(settings)
    assert run_job(settings) == 0
    assert snapshots(settings) == before
    assert_spool_is_empty(settings)


def assert_spool_is_empty(settings: Settings) -> None:
    """Nothing that was fetched waits any more."""
    left = [path.name for path in (settings.home / "spool").rglob("*") if path.suffix in {".fetch", ".plan", ".part"}]
    assert left == []
