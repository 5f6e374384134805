import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakehouse.cli import doctor, main


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "catalog" / "sources").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


def wrong() -> dict[str, str]:
    findings = json.loads(run("--json").output)["findings"]
    return {finding["topic"]: finding["advice"] for finding in findings if not finding["ok"]}


def test_a_good_machine_is_good() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert "nothing is wrong" in result.output
    assert "WRONG" not in result.output


def test_a_wrong_setting_is_a_finding_and_the_rest_is_still_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_BUSINESS_TZ", "Asia/Shanghia")
    result = run()
    assert result.exit_code == 1
    assert "LAKEHOUSE_BUSINESS_TZ" in result.output
    assert "ok     Python" in result.output
    assert "1 of " in result.output


def test_a_server_profile_without_servers_says_make_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "server")
    result = run("--json")
    assert result.exit_code == 1
    assert "make up" in result.output


def test_unreachable_servers_are_named_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "server")
    for name, database in (("DATABASE", "lakehouse"), ("ICEBERG", "iceberg")):
        monkeypatch.setenv(f"LAKEHOUSE_{name}_URL", f"postgresql+psycopg://u:hidden-word@127.0.0.1:1/{database}")
    monkeypatch.setenv("LAKEHOUSE_S3_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("LAKEHOUSE_TRINO_HOST", "127.0.0.1")
    monkeypatch.setenv("LAKEHOUSE_TRINO_PORT", "1")
    for user in ("COLLECTOR", "PIPELINE", "READER"):
        monkeypatch.setenv(f"LAKEHOUSE_{user}_ACCESS_KEY", user.lower())
        monkeypatch.setenv(f"LAKEHOUSE_{user}_SECRET_KEY", "hidden-word")
    found = wrong()
    assert set(found) == {"database ledger", "database iceberg", "object store", "Trino"}
    assert all("make up" in advice for advice in found.values())
    assert "hidden-word" not in run().output


def test_a_folder_without_a_catalog_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(tmp_path / "nowhere"))
    assert "LAKEHOUSE_CATALOG_DIR" in wrong()["catalog"]


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAKEHOUSE_HOME", str(tmp_path / "file" / "home"))
    assert "LAKEHOUSE_HOME" in wrong()["home folder"]


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_FREE_BYTES", 10**18)
    assert "larger disk" in wrong()["home folder"]


def test_a_browser_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_BROWSER_PATH", "/nowhere/chromium")
    assert wrong() == {"browser": "correct LAKEHOUSE_BROWSER_PATH"}


def test_packages_of_another_version_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pins = doctor.exact_pins()
    assert pins["duckdb"] == pins["duckdb-extension-iceberg"]
    monkeypatch.setattr(doctor, "exact_pins", lambda: {**pins, "duckdb": "0.0.1", "no-such-package": "1"})
    finding = next(f for f in doctor.look_at_versions() if f.topic == "packages")
    assert not finding.ok
    assert "not 0.0.1" in finding.found
    assert "no-such-package is missing" in finding.found


@pytest.mark.parametrize(("seconds", "ok"), [(0, True), (-4.9, True), (5.1, False), (-3600, False)])
def test_clocks_may_differ_by_seconds_only(seconds: float, ok: bool) -> None:
    finding = doctor.judge_skew("some clock", seconds)
    assert finding.ok is ok
    assert bool(finding.advice) is not ok
