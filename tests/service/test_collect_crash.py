"""Collectors killed at every step: nothing is lost, nothing is counted twice, and the next run finishes the work."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.launcher import Servers
from lakehouse.fetch.collector import collect_day
from lakehouse.fetch.report import CollectReport
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.slots import wait_for_slot
from lakehouse.settings import SNAPSHOT_BUCKET
from lakehouse.snapshots.batches import Batch, load_batch
from lakehouse.snapshots.bodies import read_body
from lakehouse.specs.source import SourceSpec
from tests.collect_worker import open_deps
from tests.nasty_site import NastySite, Visit

STOPS = (
    "spool:1",
    "spool:4",
    "after-spool:1",
    "after-spool:4",
    "settle:5",
    "after-settle:1",
    "plan:1",
    "after-plan:1",
    "body:1",
    "body:4",
    "register:1",
    "after-register:1",
    "clear:1",
)
DETAILS = 6
LISTS = 2


@pytest.fixture
def site() -> Iterator[NastySite]:
    """Two list pages of three articles each, and an article that works only when asked again."""
    made = NastySite()
    for number in range(DETAILS):
        made.pages[f"/a{number}"] = f"<h1>Article {number}</h1><p>{'text ' * 60}</p>"
    links = [f'<a class=e href="/a{number}">Title {number}</a>' for number in range(DETAILS)]
    made.pages["/"] = "".join(links[:3]) + '<a class=next href="/p2">next</a>'
    made.pages["/p2"] = "".join(links[3:])
    page = made.pages["/a4"]

    def shy(visit: Visit) -> None:
        asked = sum(path == "/a4" for path in made.paths())
        visit.reply(str(page), status=500 if asked == 1 else 200)

    made.pages["/a4"] = shy
    yield made
    made.close()


def order_of(site: NastySite, home: Path, **changes: Any) -> dict[str, Any]:
    task = {
        "name": "column",
        "url": site.url + "/",
        "cron": "0 0 * * *",
        "list": {"links": "a.e"},
        "paging": {"next": "a.next"},
    }
    source = {
        "source": "news",
        "name": "News",
        "entry_url": site.url + "/",
        "allow_private": True,
        "limits": {"interval": 0, "backoff": [0.05], "total_timeout": 20},
        "tasks": [task],
        **changes,
    }
    return {"ledger": f"sqlite:///{home / 'ledger.db'}", "home": str(home), "source": source}


@pytest.fixture(params=["local", "server"])
def order(request: pytest.FixtureRequest, site: NastySite, tmp_path: Path) -> dict[str, Any]:
    """A collector's order in each profile: SQLite and a folder, or PostgreSQL and MinIO."""
    made = order_of(site, tmp_path)
    if request.param == "server":
        servers: Servers = request.getfixturevalue("servers")
        settings = servers.settings()
        assert settings.collector_secret_key is not None
        client = {
            "endpoint": settings.s3_endpoint,
            "access_key": settings.collector_access_key,
            "secret_key": settings.collector_secret_key.get_secret_value(),
            "region": settings.s3_region,
        }
        made |= {"ledger": request.getfixturevalue("pg_database"), "s3": {"client": client, "bucket": SNAPSHOT_BUCKET}}
    return made


def start(order: dict[str, Any], stop: str | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.collect_worker", json.dumps({**order, "stop": stop})],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def kill(worker: subprocess.Popen[str]) -> None:
    worker.kill()
    worker.wait()
    assert worker.stdout is not None
    worker.stdout.close()


def collect(order: dict[str, Any]) -> tuple[CollectReport, list[Batch]]:
    """Run to the end in this process; the report, and all batches that the ledger knows."""
    deps = open_deps(order)
    day = deps.clock.today()
    report = collect_day(SourceSpec.model_validate(order["source"]), day, deps=deps)
    rows = BatchIndex(deps.ledger).uploaded("news", day)
    assert Queue(deps.ledger).due_tasks_ended("news", day)
    assert deps.spool.days() == []
    batches = [load_batch(deps.store, row.key) for row in rows]
    for batch in batches:
        for fetch in batch.fetches:
            if fetch.snap_key is not None:
                read_body(deps.store, fetch.snap_key, fetch.content_sha256)
    deps.ledger.close()
    return report, batches


def check_books(batches: list[Batch], site: NastySite) -> None:
    """Every task is there once; every answer that arrived is there once; every page was got once."""
    fetches = [fetch for batch in batches for fetch in batch.fetches]
    assert len({fetch.fetch_id for fetch in fetches}) == len(fetches), "an exchange is in two batches"
    tasks = [task for batch in batches for task in batch.tasks]
    assert len({task.task_id for task in tasks}) == len(tasks), "a task is in two batches"
    assert Counter(task.state for task in tasks) == {"done": DETAILS + LISTS}
    got = Counter(fetch.url.removeprefix(site.url) for fetch in fetches if fetch.status == 200)
    assert got == Counter(["/", "/p2", *(f"/a{number}" for number in range(DETAILS))])
    assert {task.task_id for task in tasks} == {fetch.task_id for fetch in fetches}
    entries = [entry for batch in batches for entry in batch.entries]
    assert sorted(entry.entry["title"] for entry in entries) == [f"Title {number}" for number in range(DETAILS)]
    assert all((fetch.snap_key is not None) == (fetch.kind == "detail") for fetch in fetches)


def test_an_undisturbed_day(order: dict[str, Any], site: NastySite) -> None:
    report, batches = collect(order)
    check_books(batches, site)
    assert (report.fetched, report.failed, report.retried, report.entries) == (8, 1, 1, 6)
    assert (report.ended, report.waiting, report.reason) == (True, 0, None)
    visits = len(site.visits)
    again, same = collect(order)
    assert (again.enqueued, again.fetched, again.batches) == (0, 0, [])
    assert again.reason == "all due tasks of the day have ended"
    assert same == batches
    assert len(site.visits) == visits


@pytest.mark.parametrize(
    ("order", "point"),
    [("local", point) for point in STOPS] + [("server", point) for point in ("after-spool:4", "body:4", "register:1")],
    indirect=["order"],
)
def test_killed_at_a_step(order: dict[str, Any], site: NastySite, point: str) -> None:
    worker = start(order, point)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "stopped\n"
    kill(worker)
    answered = len(site.paths())
    _, batches = collect(order)
    check_books(batches, site)
    lost = 1 if point.startswith("spool") else 0
    assert len(site.paths()) == DETAILS + LISTS + 1 + lost, "only the answer that never reached the disk is asked again"
    assert len(site.paths()) >= answered


def test_killed_while_a_page_arrives(order: dict[str, Any], site: NastySite) -> None:
    asked = threading.Event()
    page = site.pages["/a1"]

    def hang(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        asked.set()
        time.sleep(10)

    site.pages["/a1"] = hang
    worker = start(order)
    assert asked.wait(60)
    kill(worker)
    site.pages["/a1"] = page
    _, batches = collect(order)
    check_books(batches, site)
    assert Counter(site.paths())["/a1"] == 2


def test_killed_again_and_again_at_random(order: dict[str, Any], site: NastySite) -> None:
    dice = random.Random(7)
    for _ in range(5):
        worker = start(order)
        before = len(site.visits)
        until = time.monotonic() + 30
        while len(site.visits) == before and worker.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(dice.random() * 0.6)
        kill(worker)
    _, batches = collect(order)
    check_books(batches, site)
    # The article that works only when asked again: the first answer is lost where its worker dies before it is spooled.
    others = [fetch.status for batch in batches for fetch in batch.fetches if fetch.status != 200]
    assert others in ([], [500])


def test_a_stopped_collector_gives_back_what_it_held(site: NastySite, tmp_path: Path) -> None:
    asked = threading.Event()
    page = site.pages["/a1"]

    def hang(visit: Visit) -> None:
        asked.set()
        time.sleep(10)

    site.pages["/a1"] = hang
    order = order_of(site, tmp_path)
    worker = start(order)
    assert asked.wait(60)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert worker.returncode == 128 + signal.SIGTERM
    deps = open_deps(order)
    counts = Queue(deps.ledger).counts("news", deps.clock.today())
    assert "leased" not in counts
    deps.ledger.close()
    site.pages["/a1"] = page
    _, batches = collect(order)
    check_books(batches, site)


def test_collectors_share_a_day_and_its_rate_limit(order: dict[str, Any], site: NastySite) -> None:
    order["source"]["limits"] |= {"interval": 0.4}
    workers = [start(order) for _ in range(3)]
    reports = []
    for worker in workers:
        out, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0
        reports.append(json.loads(out.splitlines()[-1]))
    _, batches = collect(order)
    check_books(batches, site)
    assert sum(report["fetched"] for report in reports) == DETAILS + LISTS
    assert sum(report["enqueued"] for report in reports) == 1
    times = sorted(visit.at for visit in site.visits)
    # A slot is taken before the request is sent, so two requests may arrive a little closer than they were sent.
    span = times[-1] - times[0]
    assert span >= 0.4 * (len(times) - 1) - 0.3


def test_slots_over_processes_never_overlap(tmp_path: Path, site: NastySite) -> None:
    deps = open_deps(order_of(site, tmp_path))
    taken: list[float] = []
    lock = threading.Lock()

    def take() -> None:
        for _ in range(4):
            wait_for_slot(deps.ledger, "example.com", 0.1)
            with lock:
                taken.append(time.monotonic())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deps.ledger.close()
    assert len(taken) == 16
    assert max(taken) - min(taken) >= 0.1 * 15 - 0.1


def test_a_store_that_is_down_stops_the_run_and_loses_nothing(site: NastySite, tmp_path: Path) -> None:
    order = order_of(site, tmp_path)
    (tmp_path / "objects").write_text("no folder")
    worker = start(order)
    worker.communicate(timeout=60)
    assert worker.returncode == 1
    asked = len(site.paths())
    (tmp_path / "objects").unlink()
    _, batches = collect(order)
    check_books(batches, site)
    assert len(site.paths()) == asked


def test_the_clock_of_the_machine_is_not_asked_for_a_zone(site: NastySite, tmp_path: Path) -> None:
    order = order_of(site, tmp_path)
    environment = {**os.environ, "TZ": "America/Los_Angeles"}
    command = [sys.executable, "-m", "tests.collect_worker", json.dumps(order)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    deps = open_deps(order)
    assert json.loads(done.stdout.splitlines()[-1])["dt"] == deps.clock.today().isoformat()
    deps.ledger.close()
