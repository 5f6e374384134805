"""The same servers in containers, where a Docker engine answers: `compose.yaml` with a home's secrets and ports."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from infra import launcher
from infra.launcher import TITLES, Say, Servers, ServerStatus
from infra.servers import trino
from infra.state import PORT_NAMES, State, load_or_make_state, load_state, save_state, servers_folder, write_private
from lakehouse.errors import UnavailableError

COMPOSE_FILE = Path(__file__).parent / "compose.yaml"


def engine_answers() -> bool:
    """Whether `docker compose` would work: client, compose plugin and a running engine."""
    if shutil.which("docker") is None:
        return False
    try:
        return all(
            subprocess.run(["docker", *words], capture_output=True, check=False, timeout=15).returncode == 0
            for words in (["compose", "version"], ["info"])
        )
    except subprocess.TimeoutExpired:
        return False


def start(home: Path, say: Say) -> Servers:
    """Start the containers, wait until they are healthy, and prepare users, databases and buckets."""
    state = replace(load_or_make_state(home), engine="docker")
    save_state(home, state)
    write_private(env_file(home), "".join(f"{key}={value}\n" for key, value in compose_variables(state).items()))
    say("starting PostgreSQL, MinIO and Trino in containers")
    compose(home, ["up", "-d", "--wait", "--quiet-pull"], "start the containers")
    state = launcher.prepare(home, state)
    for name in state.names:
        say(f"{TITLES[name]} runs on 127.0.0.1:{state.ports[name]}")
    return Servers(home, state)


def stop(home: Path) -> None:
    """Stop and remove the containers; their volumes, and so the data, stay."""
    compose(home, ["down"], "stop the containers")


def read_status(home: Path) -> list[ServerStatus]:
    """What compose says about each server."""
    state = load_state(home)
    if state is None or not env_file(home).exists():
        return launcher.read_status(home)
    lines = compose(home, ["ps", "--all", "--format", "json"], "ask for the containers").splitlines()
    found = {row["Service"]: row for row in map(json.loads, lines)}
    return [_status_of(home, name, found.get(name), state) for name in state.names]


def compose_variables(state: State) -> dict[str, str]:
    """The values that `compose.yaml` asks for."""
    inside = trino.variables("postgres:5432", "http://minio:9000", state.secrets)
    return {
        "POSTGRES_ADMIN_PASSWORD": state.secrets["postgres_admin"],
        "MINIO_ROOT_PASSWORD": state.secrets["minio_root"],
        **{f"{name.upper()}_PORT": str(state.ports[name]) for name in PORT_NAMES},
        **{key: value for key, value in inside.items() if key.endswith(("_PASSWORD", "_SECRET"))},
    }


def env_file(home: Path) -> Path:
    """Where the values for compose are kept, readable by their owner only."""
    return servers_folder(home) / "compose.env"


def compose(home: Path, words: Sequence[str], what: str) -> str:
    """Run `docker compose` for this home; its standard output. Raises UnavailableError with what it said."""
    command = ["docker", "compose", "-f", str(COMPOSE_FILE), "--env-file", str(env_file(home)), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"could not {what}: `{' '.join(command)}` ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _status_of(home: Path, name: str, row: dict[str, str] | None, state: State) -> ServerStatus:
    address, log = f"127.0.0.1:{state.ports[name]}", env_file(home)
    if row is None:
        return ServerStatus(name, "stopped", address, None, log)
    if row["State"] == "running":
        return ServerStatus(name, "running" if row.get("Health") == "healthy" else "not answering", address, None, log)
    tail = compose(home, ["logs", "--no-color", "--tail", "25", name], f"read the log of {name}")
    return ServerStatus(name, "died", address, None, log, tail)
