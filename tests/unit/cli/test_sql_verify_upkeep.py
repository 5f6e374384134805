from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result

from lakehouse.cli import main
from lakehouse.lake import open_lake
from lakehouse.settings import Settings
from lakehouse.tables.committer import Committer
from tests.unit.tables.upkeep_lake import TABLE, ids_in, load, replace

ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(local_home: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """A lake with one table of two partitions, found by commands through the environment."""
    monkeypatch.setenv("LAKEHOUSE_HOME", str(local_home.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(ROOT / "catalog"))
    with open_lake(local_home) as lake:
        for number in range(6):
            replace(lake.committer, number % 2, [f"v{number}", f"w{number}"])
    yield local_home
    structlog.reset_defaults()  # a command sends logs to the stream that its runner closes


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)


def test_sql_prints_json_with_types(home: Settings) -> None:
    done = run("sql", "--json", "select source, count(*) as n, count(*) as n from clean.outcomes group by 1 order by 1")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["columns"] == [
        {"name": "source", "type": "VARCHAR"},
        {"name": "n", "type": "BIGINT"},
        {"name": "n_2", "type": "BIGINT"},
    ]
    assert found["rows"] == [{"source": "source_0", "n": 2, "n_2": 2}, {"source": "source_1", "n": 2, "n_2": 2}]
    assert (found["row_count"], found["more"]) == (2, False)


def test_sql_reads_standard_input_and_says_when_there_is_more(home: Settings) -> None:
    done = run("sql", "-", "--limit", "3", stdin="select fetch_id from clean.outcomes order by 1")
    assert done.exit_code == 0
    assert "v4" in done.stdout
    assert "w5" not in done.stdout
    assert "the first 3 rows" in done.stderr
    binary = run("sql", "select '\\xFF'::blob as b", "--json")
    assert json.loads(binary.stdout)["rows"] == [{"b": "ff"}]


def test_sql_explains_what_is_wrong(home: Settings) -> None:
    unknown = run("sql", "select * from clean.outcome")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "did you mean clean.outcomes" in unknown.stderr
    syntax = run("sql", "selec 1")
    assert syntax.exit_code == 1
    assert "syntax error" in syntax.stderr
    assert "Traceback" not in syntax.stderr


def test_explain_counts_files_and_bytes(home: Settings) -> None:
    done = run("explain", "--json", f"select count(fetch_id) from {TABLE} where source = 'source_0'")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    (reads,) = report["tables"]
    assert (reads["table"], reads["files_read"], reads["files"]) == (TABLE, 1, 2)
    assert 0 < report["bytes_read"] <= reads["bytes"]
    assert report["rows"] == 1
    refused = run("explain", "create table other as select 1")
    assert refused.exit_code == 2
    assert "takes one SELECT" in refused.output
    assert "table nothing does not exist" in run("explain", "select * from nothing").output


def test_verify_finds_equal_tables(home: Settings) -> None:
    done = run("verify", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["equal"] is True
    assert report["engines"] == ["pyiceberg", "duckdb"]
    engines = report["tables"][0]["engines"]
    assert report["tables"][0]["table"] == TABLE
    assert engines["pyiceberg"]["rows"] == engines["duckdb"]["rows"] == 4
    assert engines["pyiceberg"]["hash"] == engines["duckdb"]["hash"]
    assert "clean.outcomes" in run("verify", "--table", TABLE, "--engine", "duckdb").stdout


def test_verify_ends_with_an_error_that_names_the_table(home: Settings) -> None:
    with open_lake(home) as lake:
        task = next(iter(load(lake.committer).scan().plan_files()))
    Path(task.file.file_path.removeprefix("file://")).unlink()
    done = run("verify", "--json")
    assert done.exit_code == 4
    assert json.loads(done.stdout)["equal"] is False
    assert "clean.outcomes" in done.stderr
    assert task.file.file_path.rpartition("/")[2] in done.stderr


def test_verify_without_trino_says_which_setting_it_needs(home: Settings) -> None:
    done = run("verify", "--engine", "trino")
    assert done.exit_code == 2
    assert "LAKEHOUSE_PROFILE=server" in done.stderr


def test_upkeep_shows_a_plan_and_then_does_it(home: Settings) -> None:
    with open_lake(home) as lake:
        before = load(lake.committer).metadata_location
        plan = run("upkeep", "--keep-untagged", "2", "--json")
        assert load(lake.committer).metadata_location == before
        report = json.loads(plan.stdout)
        assert report["applied"] is False
        assert len(report["tables"][0]["expiry"]["snapshots"]) == 4
        assert "--apply" in run("upkeep", "--keep-untagged", "2").stdout
        done = run("upkeep", TABLE, "--keep-untagged", "2", "--apply", "--json")
        assert done.exit_code == 0
        assert json.loads(done.stdout)["tables"][0]["removal"]["kinds"] == report["tables"][0]["removal"]["kinds"]
        _check_left(lake.committer)
    missing = run("upkeep", "clean.nothing", "--apply")
    assert missing.exit_code == 2
    assert "clean.nothing does not exist" in missing.stderr


def _check_left(committer: Committer) -> None:
    table = load(committer)
    assert len(table.metadata.snapshots) == 2
    assert ids_in(table) == ["v4", "v5", "w4", "w5"]
