"""`lakehouse schema` from the outside, in a git checkout of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakehouse.cli import main
from lakehouse.lake import open_lake
from lakehouse.settings import load_settings

OWN_CATALOG = Path(__file__).parents[3] / "catalog"
WORDS = ("--changes", 'Subtitles: "why\\not"', "--reviewed-by", "ann")
SUBTITLE = "  - {name: subtitle, type: string, description: Below the title}\n"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed copy of the catalog, which commands find through the environment."""
    folder = Path(shutil.copytree(OWN_CATALOG, tmp_path / "checkout" / "catalog"))
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(folder))
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "begin")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["schema", *words])


def add_version(catalog: Path, more: str = SUBTITLE) -> Path:
    assert run("new", "articles", *WORDS).exit_code == 0
    path = catalog / "schemas/articles/v2.yaml"
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    return path


def test_a_new_version_is_the_newest_with_other_words(catalog: Path) -> None:
    done = run("new", "articles", *WORDS)
    assert done.exit_code == 0
    path = catalog / "schemas/articles/v2.yaml"
    assert str(path) in done.stdout
    assert "articles@2" in done.stdout
    refused = run("check")
    assert refused.exit_code == 2
    assert "v2.yaml" in refused.stdout
    assert "changed data" in refused.stdout
    path.write_text(path.read_text(encoding="utf-8") + SUBTITLE, encoding="utf-8")
    assert run("check").exit_code == 0
    with open_lake(load_settings()) as lake:
        spec = lake.catalog.schema("articles")
        assert (spec.version, spec.changes, spec.reviewed_by) == (2, 'Subtitles: "why\\not"', "ann")
        first = lake.catalog.schema("articles", 1)
        assert spec.fields[:-1] == first.fields
        assert spec.sort == first.sort
    assert run("new", "artikles", *WORDS).exit_code == 2


def test_versions_are_compared_field_by_field(catalog: Path) -> None:
    path = add_version(catalog)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("name: author\n", "name: by\n    supersedes: author\n"), encoding="utf-8")
    done = json.loads(run("diff", "articles", "1", "2", "--json").stdout)
    assert done == [
        {"what": "replaced", "field": "by", "old": "author", "new": "string"},
        {"what": "added", "field": "subtitle", "old": None, "new": "string"},
    ]
    assert run("diff", "articles", "1", "1").stdout == "the two versions are the same\n"
    back = run("diff", "articles", "2", "1").stdout.splitlines()
    assert back == ["author added (string)", "by dropped (string)", "subtitle dropped (string)"]


def test_a_number_that_two_branches_claim_is_found(catalog: Path) -> None:
    git(catalog, "checkout", "-q", "-b", "other")
    add_version(catalog, SUBTITLE.replace("subtitle", "kicker"))
    commit(catalog, "kickers")
    git(catalog, "checkout", "-q", "main")
    assert run("check").exit_code == 0
    add_version(catalog)
    commit(catalog, "subtitles")
    done = run("check")
    assert done.exit_code == 2
    assert "catalog/schemas/articles/v2.yaml: branch other/" not in done.stdout
    assert "branch other claims this version with other content" in done.stdout
    git(catalog, "branch", "-q", "-D", "other")
    assert run("check").exit_code == 0


def test_a_registered_version_has_its_commit_and_never_changes(catalog: Path) -> None:
    path = add_version(catalog)
    head = commit(catalog, "subtitles")
    with open_lake(load_settings()) as lake:
        lake.committer.table("clean.articles")
    lines = json.loads(run("history", "articles", "--json").stdout)
    assert [(line["version"], line["commit"]) for line in lines] == [
        (1, git(catalog, "rev-parse", "HEAD~1")),
        (2, head),
    ]
    assert lines[1]["changed"] == ["subtitle added (string)"]
    assert all(line["registered_at"] for line in lines)
    path.write_text(path.read_text(encoding="utf-8").replace("subtitle", "kicker"), encoding="utf-8")
    done = run("check", "--json")
    assert done.exit_code == 2
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["file"] == "catalog/schemas/articles/v2.yaml"
    assert "has changed since it was registered with clean.articles" in problem["wrong"]


def test_history_says_which_versions_have_a_field(catalog: Path) -> None:
    add_version(catalog)
    lines = json.loads(run("history", "articles", "--field", "subtitle", "--json").stdout)
    assert [line["version"] for line in lines] == [2]
    assert lines[0]["commit"] is None
    assert len(json.loads(run("history", "articles", "--field", "title", "--json").stdout)) == 2
    missing = run("history", "--field", "nothing_like_it")
    assert missing.exit_code == 2
    assert "no version has a field 'nothing_like_it'" in missing.output
