"""`lakehouse check` from the outside: exit codes, output, and what it costs to start."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lakehouse.cli import main

OWN_CATALOG = Path(__file__).parents[3] / "catalog"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OWN_CATALOG, tmp_path / "catalog"))


def test_a_right_catalog_says_what_was_read(catalog: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--catalog", str(catalog)])
    assert result.exit_code == 0
    assert result.output.startswith(f"{catalog} is right: ")
    assert "12 datasets, 12 schema versions, 1 list of checks" in result.output


def test_a_right_catalog_as_json(catalog: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--catalog", str(catalog), "--json"])
    assert result.exit_code == 0
    report = json.loads(result.output)
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["counts"]["datasets"] == 12
    assert report["counts"]["sources"] == len(list((catalog / "sources").glob("*.yaml")))
    assert report["seconds"] >= 0


def test_the_catalog_of_the_settings_is_the_default(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(catalog))
    result = CliRunner().invoke(main, ["check", "--json"])
    assert json.loads(result.output)["catalog"] == str(catalog)


def test_problems_end_with_code_2_on_standard_error(catalog: Path) -> None:
    (catalog / "sources" / "town.yaml").write_text("source: town\nnam: Town\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["check", "--catalog", str(catalog)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "catalog has 3 problems:\n"
        "  catalog/sources/town.yaml:1: key 'entry_url' is missing; add it: `entry_url: …`\n"
        "  catalog/sources/town.yaml:1: key 'tasks' is missing; add it: `tasks: …`\n"
        "  catalog/sources/town.yaml:2: nam: unknown key 'nam'; did you mean 'name'?\n"
    )


def test_problems_as_json_have_their_place(catalog: Path) -> None:
    (catalog / "sources" / "town.yaml").write_bytes(b"source: \xff")
    result = CliRunner().invoke(main, ["check", "--catalog", str(catalog), "--json"])
    assert result.exit_code == 2
    report = json.loads(result.stdout)
    assert report["ok"] is False
    assert report["problems"] == [
        {
            "file": "catalog/sources/town.yaml",
            "line": 1,
            "path": "",
            "wrong": "is not UTF-8: byte 0xFF at offset 8",
            "right": "save the file as UTF-8",
        }
    ]


def test_a_bad_template_is_found(catalog: Path) -> None:
    (catalog / "templates" / "bad").mkdir()
    (catalog / "templates" / "bad" / "v1.yaml").write_text(
        "template: bad\nversion: 1\ndescription: Bad.\nfields:\n  title: {rules: [{css: h1}], then: [strp]}\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(main, ["check", "--catalog", str(catalog), "--json"])
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["file"], problem["line"]) == ("catalog/templates/bad/v1.yaml", 5)
    assert problem["path"].startswith("fields.title.then[0]")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--catalog", str(tmp_path / "gone")])
    assert result.exit_code == 2
    assert "gone: does not exist; run in the project's folder, or set LAKEHOUSE_CATALOG_DIR" in result.stderr


def test_checking_loads_no_engine_and_no_extraction() -> None:
    heavy = ["trafilatura", "pyarrow", "pyiceberg", "dagster", "sqlalchemy", "duckdb", "httpx", "polars", "playwright"]
    code = f"import lakehouse.cli.check, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
