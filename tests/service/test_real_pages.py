"""The main job on real pages, on the server profile, through Dagster: books, engines, and the scores of what was read.

Scores are printed, and kept in `test-output/real_pages.json`. The floors lie a little below what was measured when
they were set; a page that was not collected, not cleaned or rejected counts as wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.build import build_defs
from assets.jobs import materialize_list_job
from assets.partitions import SOURCES, key_of
from infra.launcher import Servers
from lakehouse.cli.stat import take_stock
from lakehouse.lake import open_lake
from lakehouse.model.partition import SourceDay
from lakehouse.query import connect
from lakehouse.settings import Settings
from tests.real_pages import (
    LANGUAGES,
    ROOT,
    RealPage,
    by_source,
    predict,
    read_pages,
    require_folder,
    score,
    serve_pages,
    write_catalog,
)

FLOORS = {
    "en": {"title": 0.88, "day": 0.80, "body": 0.88},
    "zh": {"title": 0.90, "day": 0.90, "body": 0.85},
}
RECORDS = "SELECT url, title, publish_time, author, body FROM clean.articles WHERE source LIKE 'real_%'"
IN_REVIEW = """SELECT "row" FROM clean.rejects WHERE source LIKE 'real_%' AND action = 'review'"""

pytestmark = pytest.mark.timeout(1800)


@dataclass(frozen=True)
class Collected:
    """One run of the main job over all real sources, and what the lake then holds of them."""

    folder: Path
    settings: Settings
    pages: tuple[RealPage, ...]
    success: bool
    stock: dict[str, Any]
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def collected(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    folder, work = require_folder(), tmp_path_factory.mktemp("real-pages")
    pages = read_pages(folder)
    with serve_pages(folder, pages) as address:
        catalog = write_catalog(work / "catalog", address, pages)
        settings = servers.settings(catalog_dir=catalog, home=work / "home")
        success = run_main_job(settings, sorted(by_source(pages)), work)
    with open_lake(settings) as lake, connect(lake) as db:
        stocks = take_stock(lake)
        result = db.execute(RECORDS)
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        rows += [json.loads(row) for (row,) in db.execute(IN_REVIEW).fetchall()]
    return Collected(folder, settings, pages, success, stocks, rows)


def run_main_job(settings: Settings, sources: list[str], work: Path) -> bool:
    """Raw, clean and feature of today for all sources, in one Dagster run of this process."""
    days = [SourceDay(source, settings.clock.today()) for source in sources]
    config = {"ops": {"each_layer": {"config": {"keys": [key_of(day) for day in days]}}}}
    job = build_defs(settings).resolve_job_def(materialize_list_job.name)
    with dg.DagsterInstance.ephemeral(tempdir=str(work)) as instance:
        instance.add_dynamic_partitions(str(SOURCES.name), sources)
        return job.execute_in_process(run_config=config, instance=instance, raise_on_error=False).success


def test_every_real_page_is_collected_and_the_books_balance(collected: Collected) -> None:
    assert collected.success
    assert collected.stock["balanced"], collected.stock["problems"]
    for source, found in by_source(collected.pages).items():
        stock = collected.stock["sources"][source]
        assert stock["fetches"] == len(found) + 1, source
        assert stock["outcomes"]["listing"] == 1, source
        assert stock["outcomes"]["failed"] == 0, source


def test_the_engines_read_the_same_of_every_table(collected: Collected, servers: Servers) -> None:
    env = {**os.environ, **servers.env, "LAKEHOUSE_PROFILE": "server", "LAKEHOUSE_HOME": str(collected.settings.home)}
    command = [str(Path(sys.executable).parent / "lakehouse"), "verify", "--json"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["equal"], report["differences"]
    assert report["engines"] == ["pyiceberg", "duckdb", "trino"]
    rows = {table["table"]: table["engines"]["trino"]["rows"] for table in report["tables"]}
    assert rows["raw.fetches"] >= len(collected.pages)
    assert rows["clean.articles"] >= 200
    assert {"clean.outcomes", "clean.rejects", "feature.articles", "feature.source_daily", "meta.effective"} <= set(
        rows
    )


def test_the_scores_of_what_was_read(collected: Collected, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = predict(collected.rows, collected.pages)
    scores = {language: score(collected.folder, language, predictions[language], tmp_path) for language in LANGUAGES}
    output = ROOT / "test-output"
    output.mkdir(exist_ok=True)
    (output / "real_pages.json").write_text(json.dumps(scores, indent=2), encoding="utf-8")
    with capsys.disabled():
        for language, found in scores.items():
            sys.stdout.write(f"\nreal pages, {language}: {json.dumps(found)}")
        sys.stdout.write("\n")
    for language, floors in FLOORS.items():
        for name, floor in floors.items():
            assert scores[language][name] >= floor, f"{language} {name}: {scores[language]}"
