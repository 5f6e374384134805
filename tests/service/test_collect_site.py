"""Whole days of collecting on a local site: politeness, retries, limits, known pages, and a real browser."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError
from lakehouse.fetch.collector import collect_day
from lakehouse.fetch.report import CollectorDeps, CollectReport
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.workers import new_worker_id
from lakehouse.model.fetch import EndedTask, Entry, Fetch
from lakehouse.snapshots.batches import load_batch
from lakehouse.snapshots.bodies import read_body
from lakehouse.snapshots.spool import Spool
from lakehouse.snapshots.stores import DirectoryStore
from lakehouse.specs.source import SourceSpec
from tests.nasty_site import NastySite, Visit, redirect

ARTICLE = f"<h1>Article</h1><p>{'words ' * 100}</p>"


class Place:
    """A lake's collecting side on a site, on a day that the test chooses."""

    def __init__(self, home: Path, site: NastySite) -> None:
        self.site = site
        self.ahead = timedelta()
        clock = Clock.in_zone("Asia/Shanghai", lambda: datetime.now(UTC) + self.ahead)
        ledger = Ledger.open(f"sqlite:///{home / 'ledger.db'}", clock)
        self.deps = CollectorDeps(
            clock, ledger, DirectoryStore(home / "objects"), Spool(home / "spool"), new_worker_id(), patience_s=3
        )

    def source(self, **changes: Any) -> SourceSpec:
        task = {"name": "column", "url": self.site.url + "/", "cron": "0 0 * * *", "list": {"links": "a.e"}}
        task |= changes.pop("task", {})
        limits = {"interval": 0, "backoff": [0.05], "attempts": 2, **changes.pop("limits", {})}
        return SourceSpec.model_validate(
            {
                "source": "news",
                "name": "News",
                "entry_url": self.site.url,
                "allow_private": True,
                "limits": limits,
                "tasks": [task],
                **changes,
            }
        )

    def collect(self, dt: date | None = None, **changes: Any) -> CollectReport:
        return collect_day(self.source(**changes), dt or self.deps.clock.today(), deps=self.deps)

    def rows(self) -> tuple[list[Fetch], list[Entry], list[EndedTask]]:
        batches = [load_batch(self.deps.store, row.key) for row in BatchIndex(self.deps.ledger).uploaded()]
        return (
            [row for batch in batches for row in batch.fetches],
            [row for batch in batches for row in batch.entries],
            [row for batch in batches for row in batch.tasks],
        )

    def fetch_of(self, path: str) -> Fetch:
        return next(fetch for fetch in self.rows()[0] if fetch.url == self.site.url + path)

    def body_of(self, fetch: Fetch) -> bytes:
        return read_body(self.deps.store, fetch.snap_key or "", fetch.content_sha256)


@pytest.fixture
def site() -> Iterator[NastySite]:
    made = NastySite({"/": '<a class=e href="/a">A</a><a class=e href="/b">B</a>', "/a": ARTICLE, "/b": ARTICLE})
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path, site: NastySite) -> Iterator[Place]:
    made = Place(tmp_path, site)
    yield made
    made.deps.ledger.close()


def test_pages_had_on_an_earlier_day_are_not_asked_for_again(place: Place, site: NastySite) -> None:
    assert place.collect().fetched == 3
    place.ahead = timedelta(days=1)
    site.pages["/"] = '<a class=e href="/b">B</a><a class=e href="/c">C</a>'
    site.pages["/c"] = ARTICLE
    report = place.collect()
    assert (report.fetched, report.entries, report.known) == (2, 2, 1)
    assert Counter(site.paths()) == {"/": 2, "/a": 1, "/b": 1, "/c": 1}
    place.ahead = timedelta(days=2)
    assert place.collect(task={"take_known": True}).fetched == 3
    assert Counter(site.paths())["/b"] == 2


def test_a_past_day_without_an_address_has_nothing_due(place: Place, site: NastySite) -> None:
    report = place.collect(place.deps.clock.today() - timedelta(days=3))
    assert (report.enqueued, report.ended, site.visits) == (0, False, [])
    assert "not addressed by date: replay instead" in (report.reason or "")
    with pytest.raises(ConfigError, match="future"):
        place.collect(place.deps.clock.today() + timedelta(days=1))


def test_work_left_over_belongs_to_its_own_day(place: Place, site: NastySite) -> None:
    site.pages["/b"] = lambda visit: visit.reply(status=429, retry_after="3600")
    yesterday = place.deps.clock.today()
    report = place.collect()
    assert (report.waiting, report.ended) == (1, False)
    place.ahead = timedelta(days=1)
    site.pages["/b"] = ARTICLE
    report = place.collect(yesterday)
    assert (report.fetched, report.ended) == (1, True)
    assert {fetch.dt for fetch in place.rows()[0]} == {yesterday}


def test_robots_txt_is_obeyed(place: Place, site: NastySite) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /b\n"
    report = place.collect()
    assert (report.fetched, report.failed) == (2, 1)
    assert place.fetch_of("/b").error == "robots_disallowed"
    assert site.paths() == ["/", "/a"]
    assert sum(visit.path == "/robots.txt" for visit in site.visits) == 1


def test_robots_txt_may_be_left_aside_by_declaration(place: Place, site: NastySite) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /\n"
    assert place.collect(robots=False).fetched == 3
    assert all(visit.path != "/robots.txt" for visit in site.visits)


def test_a_site_whose_robots_txt_fails_is_left_alone(place: Place, site: NastySite) -> None:
    site.pages["/robots.txt"] = lambda visit: visit.reply(status=503)
    report = place.collect()
    assert (report.fetched, report.failed, site.paths()) == (0, 2, [])
    (task,) = place.rows()[2]
    assert task.state == "failed"
    assert "answers 503" in (task.reason or "")


def test_a_crawl_delay_is_kept(place: Place, site: NastySite) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.4\n"
    assert place.collect().fetched == 3
    times = [visit.at for visit in site.visits if visit.path != "/robots.txt"]
    assert times[-1] - times[0] >= 0.7


def test_a_redirect_into_what_robots_txt_forbids_is_not_followed(place: Place, site: NastySite) -> None:
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /hidden\n", "/a": redirect("/hidden"), "/hidden": ARTICLE}
    place.collect()
    assert place.fetch_of("/a").error == "robots_disallowed"
    assert "/hidden" not in site.paths()


def test_a_site_that_asks_for_a_pause_gets_it(place: Place, site: NastySite) -> None:
    def busy_once(visit: Visit) -> None:
        asked = site.paths().count("/a")
        visit.reply(ARTICLE, **({"status": 429, "retry_after": "1"} if asked == 1 else {}))  # type: ignore[arg-type]

    site.pages["/a"] = busy_once
    report = place.collect()
    assert (report.fetched, report.limited, report.retried, report.ended) == (3, 1, 1, True)
    first, after = [visit.at for visit in site.visits if visit.path == "/a"]
    assert after - first >= 0.9
    between = [visit.path for visit in site.visits if first < visit.at < first + 0.9]
    assert between == [], "the whole domain was left alone"


def test_failures_are_tried_again_and_every_try_is_kept(place: Place, site: NastySite) -> None:
    site.pages |= {"/a": Visit.reset, "/b": lambda visit: visit.reply("no", status=404)}
    report = place.collect(limits={"attempts": 3})
    assert (report.fetched, report.failed, report.retried) == (1, 4, 2)
    fetches, _, tasks = place.rows()
    tries = [(fetch.attempt, fetch.error) for fetch in fetches if fetch.url.endswith("/a")]
    assert tries == [(1, "protocol_error"), (2, "protocol_error"), (3, "protocol_error")]
    by_url = {task.url.removeprefix(site.url): task for task in tasks}
    assert (by_url["/a"].state, by_url["/a"].attempts) == ("failed", 3)
    assert (by_url["/a"].reason or "").startswith("protocol_error")
    assert (by_url["/b"].reason, by_url["/b"].attempts) == ("http_error 404", 1)
    assert place.body_of(place.fetch_of("/b")) == b"no"


def test_a_limited_list_is_evidence_and_gives_no_entries(place: Place, site: NastySite) -> None:
    wall = '<p>请输入验证码</p><a class=e href="/a">A</a>'
    site.pages["/"] = wall
    report = place.collect()
    assert (report.limited, report.entries, report.ended) == (1, 0, True)
    fetch = place.fetch_of("/")
    assert fetch.limited == "captcha"
    assert place.body_of(fetch) == wall.encode()


def test_an_empty_list_is_kept_and_a_full_one_is_not(place: Place, site: NastySite) -> None:
    place.collect()
    assert place.fetch_of("/").snap_key is None
    place.ahead = timedelta(days=1)
    site.pages["/"] = "<p>Nothing today, but do come back tomorrow.</p>"
    place.collect()
    emptied = place.rows()[0][-1]
    assert place.body_of(emptied) == b"<p>Nothing today, but do come back tomorrow.</p>"


def test_numbered_pages_end_where_the_site_repeats_itself(place: Place, site: NastySite) -> None:
    site.pages["/list"] = '<a class=e href="/a">A</a>'
    report = place.collect(task={"url": site.url + "/list?p={page}", "paging": {"first": 0}})
    assert [path for path in site.paths() if path.startswith("/list")] == ["/list?p=0", "/list?p=1"]
    assert (report.fetched, report.entries) == (3, 2)


def test_secrets_reach_the_site_and_nothing_else(place: Place, site: NastySite, tmp_path: Path) -> None:
    site.pages["/"] = '<a class=e href="/a?key=s3cret&x=1">A</a>'
    site.pages["/a"] = lambda visit: visit.reply(ARTICLE, set_cookie="sid=c00kie; Path=/")
    place.collect(secret_params=["key"], task={"url": site.url + "/?key=s3cret"})
    assert site.paths() == ["/?key=s3cret", "/a?key=s3cret&x=1"]
    fetches, entries, tasks = place.rows()
    assert "s3cret" not in repr((fetches, entries, tasks))
    assert "c00kie" not in repr(fetches)
    assert fetches[1].url == site.url + "/a?key=***&x=1"
    place.deps.ledger.close()
    with (tmp_path / "ledger.db").open("rb") as file:
        rows = file.read()
    assert rows.count(b"?key=***") >= 2


def test_rules_that_cannot_be_used_stop_before_anything_is_asked_for(place: Place, site: NastySite) -> None:
    source = place.source()
    task = source.tasks[0]
    assert task.list is not None
    broken = task.model_copy(update={"list": task.list.model_copy(update={"links": "a[["})})
    with pytest.raises(ConfigError):
        collect_day(source.model_copy(update={"tasks": (broken,)}), place.deps.clock.today(), deps=place.deps)
    assert site.visits == []


SCRIPTED = """<!doctype html><title>x</title><div id=app></div><script>
fetch('/data.json').then(r => r.json()).then(rows => {
  document.getElementById('app').innerHTML = rows.map(r => `<a class=e href="${r}">${r}</a>`).join('');
}).catch(() => { document.getElementById('app').textContent = 'no data'; });
</script>"""


def scripted(site: NastySite, data: Callable[[Visit], None]) -> None:
    site.pages |= {"/": SCRIPTED, "/data.json": data}


def test_a_page_made_by_scripts_is_kept_as_served_and_as_rendered(place: Place, site: NastySite) -> None:
    scripted(site, lambda visit: visit.reply('["/a", "/b"]', content_type="application/json"))
    site.pages["/b"] = redirect("/a")
    report = place.collect(fetcher="browser", task={"list": {"links": "a.e", "wait_for": "a.e"}})
    assert (report.fetched, report.entries, report.failed) == (3, 2, 0)
    detail = place.fetch_of("/a")
    assert (detail.fetcher, detail.remote_addr, detail.status) == ("browser", "127.0.0.1", 200)
    assert place.body_of(detail) == ARTICLE.encode()
    rendered = read_body(place.deps.store, detail.rendered_key or "", detail.rendered_sha256)
    assert rendered.startswith(b"<html>")
    moved = place.fetch_of("/b")
    assert (moved.final_url, moved.redirects) == (site.url + "/a", (site.url + "/b",))


def test_a_browser_reaches_no_private_address(place: Place, site: NastySite, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakehouse.fetch import policy

    monkeypatch.setattr(policy, "is_public", lambda ip: str(ip) == "127.0.0.1")
    inner = NastySite({"/data.json": '["/a"]', "/secret": ARTICLE}, host="127.0.0.2")
    scripted(site, redirect(inner.url + "/data.json"))
    site.pages |= {"/a": redirect(inner.url + "/secret"), "/": SCRIPTED + '<a class=e href="/a">A</a>'}
    report = place.collect(fetcher="browser", allow_private=False)
    assert inner.visits == []
    assert (report.fetched, report.failed) == (1, 1)
    assert place.fetch_of("/a").error == "address_refused"
    inner.close()


def test_a_browser_that_is_not_answered_gives_up(place: Place, site: NastySite) -> None:
    site.pages["/"] = lambda _: time.sleep(6)
    report = place.collect(
        fetcher="browser", limits={"attempts": 1, "connect_timeout": 1, "read_timeout": 1, "total_timeout": 2}
    )
    assert (report.fetched, report.failed) == (0, 1)
    assert place.fetch_of("/").error == "timeout"


def test_a_missing_browser_is_a_clear_error(place: Place, site: NastySite, tmp_path: Path) -> None:
    from dataclasses import replace

    place.deps = replace(place.deps, browser_path=str(tmp_path / "no-chromium"))
    with pytest.raises(ConfigError, match="LAKEHOUSE_BROWSER_PATH"):
        place.collect(fetcher="browser")
    assert site.visits == []
