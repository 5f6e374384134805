"""The demo, judged by the site's answer key: every fetch of every page, and every value that a template reads."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from assets import demo
from infra.demo_site import Answer, answers, run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.cli.demo import describe_lake
from lakehouse.errors import ConfigError
from lakehouse.lake import open_lake
from lakehouse.query import connect
from lakehouse.query.locations import read_locations
from lakehouse.settings import Settings, load_settings
from tests.doc_examples import blocks, lakehouse_commands

ROOT = Path(__file__).parent.parent.parent
FETCHES = """
    SELECT f.source, f.url, f.attempt, o.outcome, o.reason FROM raw.fetches f JOIN clean.outcomes o USING (fetch_id)
    ORDER BY f.collect_time, f.fetch_id
"""
TRIED_AGAIN = {"/odd/busy.html", "/odd/crash.html", "/odd/hang-up.html"}


@dataclass(frozen=True)
class Demo:
    """Two runs of the demo on one lake, and what the lake then holds."""

    settings: Settings
    first: dict[str, Any]
    second: dict[str, Any]
    report: dict[str, Any]
    fetches: list[dict[str, Any]]
    records: list[dict[str, Any]]
    answers: dict[str, Answer]
    between: dict[str, str]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch, run_site() as site:
        patch.setenv("DAGSTER_HOME", str(folder))
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        settings = load_settings(home=folder / "home", catalog_dir=catalog)
        days = demo.demo_days(settings)
        first = demo.run_days(settings, days)
        assert first["success"], first["failures"]
        between = table_states(settings)
        second = demo.run_days(settings, days)
    with open_lake(settings) as lake, connect(lake) as db:
        fetches = _rows(db, FETCHES)
        records = _rows(db, "FROM clean.articles ORDER BY collect_time, fetch_id")
        report = describe_lake(lake, second)
        today = settings.clock.today()
    key = answers(days=[today - timedelta(days=n) for n in range(3)], today=today)
    return Demo(settings, first, second, report, fetches, records, key, between)


def table_states(settings: Settings) -> dict[str, str]:
    """Where every table's newest metadata lies: it moves with every commit."""
    with open_lake(settings) as lake:
        return dict(read_locations(lake.iceberg))


def _rows(db: Any, query: str) -> list[dict[str, Any]]:
    result = db.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def squash(text: str | None) -> str:
    return "".join((text or "").split())


def test_the_run_succeeds_and_tells_each_partition(done: Demo) -> None:
    assert (done.first["success"], done.first["failures"]) == (True, [])
    made = {(event["table"], event["partition"]) for event in done.first["partitions"]}
    days = {event["partition"] for event in done.first["partitions"]}
    assert len(days) == 8
    assert {("raw.fetches", day) for day in days} | {("clean.articles", day) for day in days} <= made


def test_a_second_run_on_the_same_day_commits_nothing_new(done: Demo) -> None:
    assert (done.second["success"], done.second["failures"]) == (True, [])
    assert len(done.second["partitions"]) == len(done.first["partitions"])
    assert [event for event in done.second["partitions"] if event["changed"]] == []
    assert any(event["changed"] for event in done.first["partitions"])
    assert table_states(done.settings) == done.between


def test_every_page_has_the_outcome_of_the_answer_key(done: Demo) -> None:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for fetch in done.fetches:
        found.setdefault(path_of(fetch["url"]), []).append((fetch["outcome"], fetch["reason"]))
    wrong = {}
    for path, answer in done.answers.items():
        outcomes = found.pop(path, [])
        times = 2 if path in TRIED_AGAIN else 1
        expected = sorted(answer.outcomes * times)
        reasons = {reason for _, reason in outcomes} - {"duplicate_in_partition"} or {None}
        if sorted(outcome for outcome, _ in outcomes) != expected or reasons != {answer.reason}:
            wrong[path] = outcomes
    assert wrong == {}
    lists = {outcome for outcomes in found.values() for outcome, _ in outcomes}
    assert lists == {"listing"}
    assert sum(len(outcomes) for outcomes in found.values()) == 13


def test_templates_read_every_value_exactly(done: Demo) -> None:
    records: dict[str, list[dict[str, Any]]] = {}
    for record in done.records:
        records.setdefault(path_of(record["url"]), []).append(record)
    checked = 0
    for path, answer in done.answers.items():
        if not answer.exact or "rejected" in answer.outcomes:
            continue
        assert len(records[path]) == len(answer.truths), path
        for record, truth in zip(records[path], answer.truths, strict=True):
            found = [record[name] for name in ("title", "author", "origin", "body", "time_confidence", "language")]
            assert found == [
                truth.title,
                truth.author,
                truth.origin,
                truth.body,
                truth.time_confidence,
                truth.language,
            ], path
            assert truth.publish_time is not None
            assert record["publish_time"].astimezone(UTC) == truth.publish_time.astimezone(UTC), path
            checked += 1
    assert checked == 48 + 12 + 10


def test_pages_without_a_template_give_title_time_and_text(done: Demo) -> None:
    records = {path_of(record["url"]): record for record in done.records}
    wrong = {}
    for path, answer in done.answers.items():
        if answer.exact or answer.outcomes != ("clean",):
            continue
        record, truth = records[path], answer.truths[0]
        moment = record["publish_time"]
        if squash(record["title"]) != squash(truth.title):
            wrong[path] = f"title {record['title']!r}"
        elif record["time_confidence"] != truth.time_confidence:
            wrong[path] = f"time confidence {record['time_confidence']}"
        elif truth.publish_time is not None and moment.astimezone(UTC) != truth.publish_time.astimezone(UTC):
            wrong[path] = f"time {moment}, expected {truth.publish_time}"
        elif truth.age is not None and abs(record["collect_time"] - moment - truth.age) > timedelta(minutes=1):
            wrong[path] = f"time {moment} of a page of age {truth.age}"
        elif not all(squash(part) in squash(record["body"]) for part in truth.body.split("\n")):
            wrong[path] = "body lacks a paragraph"
        elif len(squash(record["body"])) > len(squash(truth.body)) * 1.15:
            wrong[path] = f"body holds more than the story: {record['body'][-200:]!r}"
    assert wrong == {}


def test_the_report_says_what_was_collected_and_why_not(done: Demo) -> None:
    report = done.report
    assert (report["changed"], report["partitions"]) == (0, len(done.second["partitions"]))
    assert report["stock"]["balanced"]
    assert {row["reason"] for row in report["why"]} >= {"title_too_long", "login_wall", "robots_disallowed", "not_html"}
    assert [row["title"].endswith("（更新）") for row in report["edited"]] == [True, False]
    assert report["home"]["problems"] == []
    assert report["home"]["snapshot"]["verified"]
    assert len(report["some_rows"]) == 6
    json.dumps(report, default=str)


def test_the_site_takes_a_free_port_where_another_program_has_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = load_settings(home=tmp_path, catalog_dir=ROOT / "catalog")
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(demo, "DEFAULT_PORT", other.getsockname()[1])
        with demo.open_site(settings) as (moved, address):
            assert moved.catalog_dir != settings.catalog_dir
            news = (moved.catalog_dir / "sources" / "demo_news.yaml").read_text(encoding="utf-8")
            assert f"{address}/news/" in news
            assert demo.is_demo_site(address)
        assert not moved.catalog_dir.exists()


def test_a_demo_site_that_runs_already_is_used_and_begins_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, catalog_dir=ROOT / "catalog")
    with run_site() as site:
        monkeypatch.setattr(demo, "DEFAULT_PORT", site.server_port)
        edited = next(path for path, answer in answers().items() if len(answer.truths) == 2)
        site.site.reply(edited)
        with demo.open_site(settings) as (same, address):
            assert (same, address) == (settings, site.url)
            assert "更正：" not in site.site.reply(edited).body.decode()


def test_a_catalog_without_demo_sources_is_an_error_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = copy_catalog(ROOT / "catalog", tmp_path / "catalog", 8765)
    for file in (catalog / "sources").iterdir():
        file.unlink()
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(catalog))
    assert demo.main(["--report", str(tmp_path / "run.json")]) == 2
    assert "demo_*.yaml" in capsys.readouterr().err
    assert not (tmp_path / "run.json").exists()
    assert not (tmp_path / "home").exists()
    assert os.environ.get("DAGSTER_HOME") != str(tmp_path / "home" / "dagster")


def test_without_a_browser_the_scripted_column_is_left_out_with_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(home=tmp_path, catalog_dir=ROOT / "catalog")
    assert "demo_js" in {day.source for day in demo.demo_days(settings)}

    def find_none(path: str | None) -> str:
        raise ConfigError(f"no browser at {path}")

    monkeypatch.setattr(demo, "find_browser", find_none)
    left = {day.source for day in demo.demo_days(settings)}
    assert left == {"demo_daily", "demo_gazette", "demo_nasty", "demo_news", "demo_world"}
    assert "leaving out demo_js" in capsys.readouterr().err
    wrong = settings.model_copy(update={"browser_path": "/nowhere/chromium"})
    with pytest.raises(ConfigError):
        demo.demo_days(wrong)


def test_every_query_in_the_guides_runs(done: Demo) -> None:
    queries = [block.text for block in blocks("sql")]
    for _, words in lakehouse_commands():
        if words[0] == "sql":
            queries += [word for word in words[1:] if " " in word]
    assert len(queries) >= 4
    with open_lake(done.settings) as lake, connect(lake) as db:
        for query in queries:
            assert db.execute(query.replace("lakehouse.", "")).description


def test_every_python_example_runs(done: Demo) -> None:
    lake = {"LAKEHOUSE_HOME": str(done.settings.home), "LAKEHOUSE_CATALOG_DIR": str(done.settings.catalog_dir)}
    examples = {block.text: block.page for block in blocks("python")}
    assert examples
    for text, page in examples.items():
        ran = subprocess.run(
            [sys.executable, "-c", text],
            cwd=ROOT,
            env={**os.environ, **lake},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{page}: {ran.stderr}"
        assert "│" in ran.stdout, f"{page} shows no rows"
