"""The main job's commands: names and days that cannot be start nothing; what they print adds up."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakehouse.cli import main
from lakehouse.lake import Lake
from lakehouse.model.partition import Partition
from lakehouse.settings import Settings


@pytest.fixture
def run(town: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `lakehouse …` on the module's lake."""
    monkeypatch.setenv("LAKEHOUSE_HOME", str(town.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(town.catalog_dir))

    def command(*words: str) -> Result:
        return CliRunner().invoke(main, list(words), catch_exceptions=False)

    return command


@pytest.fixture(scope="module")
def collected(town: Settings) -> Settings:
    """One day of letters, all layers, by the command itself."""
    env = {"LAKEHOUSE_HOME": str(town.home), "LAKEHOUSE_CATALOG_DIR": str(town.catalog_dir)}
    words = ["materialize", "--source", "demo_daily", "--dt", "2025-04-01", "--json"]
    result = CliRunner().invoke(main, words, env=env)
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"]) == (0, True)
    assert {row["table"]: row["row_count"] for row in report["results"]}["clean.articles"] == 4
    return town


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["collect", "--source", "demo_dialy"], 2, "demo_daily"),
        (["collect", "--source", "demo_daily", "--dt", "2025-13-01"], 2, "write it as YYYY-MM-DD"),
        (["collect", "--source", "demo_daily", "--dt", "2999-01-01"], 2, "lies in the future"),
        (["materialize", "--source", "demo_daily", "--dt", "20250401"], 2, "YYYY-MM-DD"),
        (["materialize", "--source", "demo_daily", "--dt", "2025-04-01", "--from", "2025-04-01"], 2, "one of the two"),
        (["materialize", "--source", "demo_daily", "--to", "2025-04-01"], 2, "--from"),
        (
            ["materialize", "--source", "demo_daily", "--from", "2025-04-02", "--to", "2025-04-01"],
            2,
            "before it begins",
        ),
        (["materialize", "--source", "demo_daily", "--layer", "gold"], 2, "gold"),
        (["stat", "--source", "nobody"], 2, "nobody"),
        (["stat", "--dt", "tomorrow"], 2, "YYYY-MM-DD"),
        (["trace", "no-such-thing"], 2, "nothing leads home"),
        (["trace", "http://127.0.0.1/never-fetched"], 2, "nothing leads home"),
        (["trace", "f" * 32], 2, "nothing leads home"),
    ],
)
def test_what_cannot_be_is_said_and_starts_nothing(run: Any, words: list[str], code: int, told: str) -> None:
    result = run(*words)
    assert result.exit_code == code
    assert told in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("template: demo_daily@1", "template: demo_daily@7"),
        ("template: demo_daily@1", "template: demo_dialy@1"),
        ("by_date: true", "by_date: true\nwrites: articles@9"),
        ("by_date: true", "by_dates: true"),
    ],
)
def test_a_catalog_that_cannot_be_right_stops_before_any_work(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    broken = tmp_path / "catalog"
    shutil.copytree(os.environ["LAKEHOUSE_CATALOG_DIR"], broken)
    file = broken / "sources" / "demo_daily.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(broken))
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "home"))
    result = run("materialize", "--source", "demo_daily", "--dt", "2025-04-01")
    assert result.exit_code == 2
    assert "sources/demo_daily.yaml" in result.stderr
    assert not (tmp_path / "home" / "objects").exists()


def test_stat_adds_up(run: Any, collected: Settings) -> None:
    result = run("stat", "--source", "demo_daily", "--dt", "2025-04-01", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["balanced"], report["not_cleaned_yet"]) == (0, True, [])
    assert report["days"] == [
        {
            "source": "demo_daily",
            "dt": "2025-04-01",
            "fetches": 5,
            "outcomes": {"clean": 4, "listing": 1},
            "outcomes_sum": 5,
            "rows_out": 4,
            "rows": 4,
            "balanced": True,
        }
    ]
    assert "the books balance" in run("stat").stdout


def test_stat_ends_with_1_where_the_books_do_not_balance(run: Any, lake: Lake, collected: Settings) -> None:
    words = ("materialize", "--source", "demo_daily", "--dt", "2025-04-02", "--json")
    assert run(*words).exit_code == 0
    partition = Partition("demo_daily", lake.clock.parse_day("2025-04-02"), 1)
    rows = lake.committer.scan("clean.articles", [partition])
    lake.committer.replace("clean.articles", rows.slice(1), [partition])
    result = run("stat", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["balanced"]) == (1, False)
    assert "clean rows differ from rows_out" in report["problems"][0]
    assert run(*words, "--layer", "clean").exit_code == 0
    assert run("stat").exit_code == 0


def test_a_day_that_is_collected_only_is_not_cleaned_yet(run: Any, collected: Settings) -> None:
    assert run("collect", "--source", "demo_daily", "--dt", "2025-04-03", "--json").exit_code == 0
    report = json.loads(run("stat", "--dt", "2025-04-03", "--json").stdout)
    assert (report["balanced"], report["not_cleaned_yet"]) == (True, ["demo_daily|2025-04-03"])
    assert run("materialize", "--source", "demo_daily", "--dt", "2025-04-03", "--layer", "clean").exit_code == 0
    assert json.loads(run("stat", "--dt", "2025-04-03", "--json").stdout)["not_cleaned_yet"] == []


@pytest.mark.parametrize("by", ["fetch_id", "url", "content_hash"])
def test_a_row_leads_home_by_each_of_its_names(run: Any, lake: Lake, collected: Settings, by: str) -> None:
    partition = Partition("demo_daily", lake.clock.parse_day("2025-04-01"), 1)
    row = lake.committer.scan("clean.articles", [partition]).to_pylist()[0]
    result = run("trace", row[by], "--json")
    [home] = json.loads(result.stdout)["fetches"]
    assert (result.exit_code, home["problems"]) == (0, [])
    assert (home["fetch"]["fetch_id"], home["records"][0]["title"]) == (row["fetch_id"], row["title"])
    assert home["snapshot"]["verified"]
    assert home["template"] == "demo_daily@1"
    assert home["task"]["task_id"] == row["task_id"]
    assert home["evidence"]["fields"]["title"]["raw"].strip() == row["title"]
    assert row["title"] in run("trace", row[by]).stdout.replace("\n", "")


def test_a_lost_body_does_not_lead_home(run: Any, lake: Lake, collected: Settings) -> None:
    partition = Partition("demo_daily", lake.clock.parse_day("2025-04-01"), 1)
    row = lake.committer.scan("clean.articles", [partition]).to_pylist()[1]
    [body] = (collected.home / "objects" / "data").rglob(row["snap_key"].rpartition("/")[2])
    data = body.read_bytes()
    body.unlink()
    try:
        result = run("trace", row["fetch_id"], "--json")
        [home] = json.loads(result.stdout)["fetches"]
    finally:
        body.write_bytes(data)
    assert (result.exit_code, home["snapshot"]["verified"]) == (1, False)
    assert row["snap_key"] in home["problems"][0]


def test_accept_proves_what_is_built_and_calls_nothing_else_proven(run: Any, collected: Settings) -> None:
    result = run("accept", "--json")
    report = json.loads(result.stdout)
    by_status: dict[str, set[str]] = {}
    for proof in report["proofs"]:
        by_status.setdefault(proof["status"], set()).add(proof["name"])
    assert (result.exit_code, report["ok"]) == (0, True), report
    assert {"books_balance", "every_row_leads_home", "engines_agree", "same_batch_twice"} <= by_status["proven"]
    assert {"replay_from_packs", "ledger_rebuild"} <= by_status["not built yet"]
    assert "failed" not in by_status


def test_accept_fails_where_a_promise_is_broken(run: Any, lake: Lake, collected: Settings) -> None:
    partition = Partition("demo_daily", lake.clock.parse_day("2025-04-01"), 1)
    rows = lake.committer.scan("clean.outcomes", [partition])
    lake.committer.replace("clean.outcomes", rows.slice(1), [partition])
    result = run("accept", "--json")
    lake.committer.replace("clean.outcomes", rows, [partition])
    broken = {proof["name"] for proof in json.loads(result.stdout)["proofs"] if proof["status"] == "failed"}
    assert result.exit_code == 1
    assert {"books_balance", "index_tells_the_truth", "clean_is_pure"} <= broken


def test_an_empty_lake_has_nothing_to_prove_and_no_books(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "empty"))
    report = json.loads(run("stat", "--json").stdout)
    assert (report["balanced"], report["totals"]["fetches"]) == (True, 0)
    statuses = {proof["name"]: proof["status"] for proof in json.loads(run("accept", "--json").stdout)["proofs"]}
    assert statuses["every_row_leads_home"] == "nothing to prove it on"
    assert "failed" not in statuses.values()
