"""Starting, stopping, dying and coming back: servers in homes of their own, without Trino where it adds nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from infra import launcher
from infra.__main__ import main
from infra.launcher import Servers
from infra.processes import process_identity
from lakehouse.cli import main as lakehouse
from lakehouse.errors import UnavailableError
from tests.s3_server import S3


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for the pair below; a test that breaks something in it puts it right again."""
    made = tmp_path_factory.mktemp("pair")
    yield made
    launcher.stop(made)


@pytest.fixture
def pair(home: Path) -> Servers:
    """PostgreSQL and MinIO, running whatever the test before did to them."""
    return start(home)


def start(home: Path, say: Callable[[str], None] = print) -> Servers:
    return launcher.start(home, trino=False, short_lived=True, say=say)


def states(home: Path) -> dict[str, str]:
    return {row.name: row.state for row in launcher.read_status(home)}


def test_a_second_start_changes_nothing(pair: Servers) -> None:
    pids = {name: pair.process(name).pid() for name in pair.state.names}
    env = (pair.home / "server.env").read_text()
    again = start(pair.home)
    assert {name: again.process(name).pid() for name in pair.state.names} == pids
    assert again.state == pair.state
    assert (pair.home / "server.env").read_text() == env


def test_everything_stays_below_one_folder_that_only_we_enter(pair: Servers) -> None:
    assert {path.name for path in pair.home.iterdir()} == {"server.env", "servers"}
    assert (pair.home / "servers").stat().st_mode & 0o077 == 0


def test_stop_and_start_keep_data_ports_and_secrets(pair: Servers) -> None:
    import psycopg

    with psycopg.connect(pair.admin_database_url("lakehouse")) as db:
        db.execute("CREATE TABLE kept AS SELECT 7 AS seven")
    assert launcher.stop(pair.home) == ["minio", "postgres"]
    assert states(pair.home) == dict.fromkeys(pair.state.names, "stopped")
    assert launcher.stop(pair.home) == []
    assert start(pair.home).state == pair.state
    with psycopg.connect(pair.admin_database_url("lakehouse")) as db:
        assert db.execute("SELECT seven FROM kept").fetchone() == (7,)


@pytest.mark.parametrize("name", ["postgres", "minio"])
def test_a_killed_server_shows_its_log_and_comes_back(pair: Servers, name: str) -> None:
    pair.process(name).kill()
    runner = CliRunner()
    shown = runner.invoke(main, ["status", "--home", str(pair.home)])
    assert shown.exit_code == 1
    assert f"{launcher.TITLES[name]:<11} died" in shown.output
    assert pair.process(name).log_tail().splitlines()[-1] in shown.output
    said: list[str] = []
    start(pair.home, said.append)
    assert any("had died" in line for line in said)
    assert states(pair.home) == {"postgres": "running", "minio": "running", "trino": "stopped"}


def test_a_port_that_somebody_took_is_left_to_them(pair: Servers) -> None:
    port = pair.state.ports["minio"]
    pair.stop()
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        said: list[str] = []
        moved = start(pair.home, said.append)
    assert moved.state.ports["minio"] != port
    assert moved.state.ports["postgres"] == pair.state.ports["postgres"]
    assert f"port {port} of MinIO is taken" in said[0]
    assert f"LAKEHOUSE_S3_ENDPOINT=http://127.0.0.1:{moved.state.ports['minio']}\n" in (
        (pair.home / "server.env").read_text()
    )


def test_a_server_that_cannot_start_says_why_and_takes_the_others_with_it(pair: Servers) -> None:
    pair.stop()
    settings = pair.home / "servers/postgres/data/postgresql.conf"
    good = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    with pytest.raises(UnavailableError, match="no_such_setting"):
        start(pair.home)
    settings.write_text(good)
    assert set(states(pair.home).values()) == {"stopped"}


def test_lost_secrets_are_named_instead_of_waited_for(pair: Servers) -> None:
    pair.stop()
    state = pair.home / "servers/state.json"
    good = state.read_text()
    state.unlink()
    with pytest.raises(UnavailableError, match=r"state\.json"):
        start(pair.home)
    state.write_text(good)
    assert set(states(pair.home).values()) == {"stopped"}


def test_a_pid_that_now_belongs_to_somebody_else_is_never_ended(pair: Servers) -> None:
    pair.stop()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
        pair.process("minio").pid_file.write_text(json.dumps({"pid": bystander.pid, "identity": "another start"}))
        assert states(pair.home)["minio"] == "died"
        assert launcher.stop(pair.home) == []
        assert process_identity(bystander.pid) is not None
        bystander.kill()
    assert states(pair.home)["minio"] == "stopped"


def test_two_starts_at_once_start_one_set(tmp_path: Path) -> None:
    code = "import sys, pathlib, infra.launcher as l; l.start(pathlib.Path(sys.argv[1]), trino=False, short_lived=True)"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=env) for _ in range(2)]
    try:
        assert [one.wait() for one in both] == [0, 0]
        assert states(tmp_path) == {"postgres": "running", "minio": "running", "trino": "stopped"}
        family = {row.pid for row in launcher.read_status(tmp_path)} - {None}
        assert len(family) == 2
    finally:
        launcher.stop(tmp_path)


def test_the_doctor_finds_good_servers_good(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    result = doctor(servers, monkeypatch)
    assert result.exit_code == 0, result.output
    findings = json.loads(result.output)["findings"]
    topics = [finding["topic"] for finding in findings]
    assert {"database ledger", "database iceberg", "database dagster", "object store", "Trino catalog"} <= {*topics}
    assert topics.count("user collector") == 2


def test_the_doctor_names_a_server_that_is_down(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.stop_one(S3)
    try:
        result = doctor(servers, monkeypatch)
    finally:
        servers.start_one(S3)
    wrong = [finding for finding in json.loads(result.output)["findings"] if not finding["ok"]]
    assert [finding["topic"] for finding in wrong] == ["object store"]
    assert "make up" in wrong[0]["advice"]
    assert result.exit_code == 1


def test_the_doctor_names_a_wrong_key_without_showing_it(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_READER_SECRET_KEY", "not-the-right-secret")
    result = doctor(servers, monkeypatch)
    wrong = [finding for finding in json.loads(result.output)["findings"] if not finding["ok"]]
    assert {finding["topic"] for finding in wrong} == {"user reader"}
    assert "LAKEHOUSE_READER_ACCESS_KEY" in wrong[0]["advice"]
    assert "not-the-right-secret" not in result.output


def doctor(servers: Servers, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "server")
    monkeypatch.setenv("LAKEHOUSE_HOME", str(servers.home))
    return CliRunner().invoke(lakehouse, ["doctor", "--json"])


def test_a_watcher_stops_the_servers_of_a_run_that_was_killed(pair: Servers) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as run:
        command = [sys.executable, "-m", "infra", "down", "--home", str(pair.home), "--after", str(run.pid)]
        with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as watcher:
            assert states(pair.home)["postgres"] == "running"
            run.kill()
            said, _ = watcher.communicate(timeout=120)
    assert watcher.returncode == 0
    assert "PostgreSQL stopped" in said
    assert set(states(pair.home).values()) == {"stopped"}
