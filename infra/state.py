"""What one installation keeps: ports and secrets, in a file that only its owner reads."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from lakehouse.errors import UnavailableError

SERVER_PORTS = range(15_000, 32_000)
PORTS_A_PROCESS = 37
PORT_NAMES = ("postgres", "minio", "trino")
SECRET_NAMES = (
    "postgres_admin",
    "postgres_lakehouse",
    "postgres_iceberg",
    "postgres_dagster",
    "postgres_trino_reader",
    "postgres_trino_upkeep",
    "minio_root",
    "s3_collector",
    "s3_pipeline",
    "s3_reader",
    "s3_upkeep",
)


@dataclass(frozen=True, slots=True)
class State:
    """Ports, secrets, and how the servers run: `processes` or `docker`; `prepared` once users and buckets exist.

    `s3` is the S3 server: `minio` or `seaweedfs`.

    `short_lived` servers start and answer sooner, and do worse in the long run: PostgreSQL leaves flushing to the
    system (safe against everything but a power cut), and Trino's compiler stops at its quick stage.
    """

    ports: Mapping[str, int]
    secrets: Mapping[str, str] = field(repr=False)
    engine: str = "processes"
    prepared: bool = False
    short_lived: bool = False
    s3: str = "minio"

    @property
    def names(self) -> tuple[str, str, str]:
        """The servers, in the order of their start."""
        return ("postgres", self.s3, "trino")


def servers_folder(home: Path) -> Path:
    """Where everything the servers keep lies; one folder below `home`."""
    return home.resolve() / "servers"


def free_port(taken: frozenset[int] = frozenset()) -> int:
    """A TCP port of 127.0.0.1 on which nothing listens now; UnavailableError if there is none.

    It lies below the ports that the system gives to outgoing connections: one of those could be taken by any client
    between this answer and the start of the server. Processes that ask at the same time look in different places.
    """
    at = os.getpid() * PORTS_A_PROCESS
    for offset in range(len(SERVER_PORTS)):
        port = SERVER_PORTS[(at + offset) % len(SERVER_PORTS)]
        if port not in taken and port_is_free(port):
            return port
    raise UnavailableError(f"no port of 127.0.0.1 from {SERVER_PORTS[0]} to {SERVER_PORTS[-1]} is free; stop a server")


def port_is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def load_state(home: Path) -> State | None:
    """The saved state, or None before the first start."""
    path = servers_folder(home) / "state.json"
    if not path.exists():
        return None
    saved = json.loads(path.read_text())
    known = {one.name for one in fields(State)}
    return State(**{name: value for name, value in saved.items() if name in known})


def load_or_make_state(home: Path, port_names: Sequence[str] = PORT_NAMES) -> State:
    """The saved state; ports and secrets that are missing are chosen at random and saved."""
    old = load_state(home) or State({}, {})
    ports = dict(old.ports)
    for name in port_names:
        if name not in ports:
            ports[name] = free_port(frozenset(ports.values()))
    words = {name: old.secrets.get(name) or secrets.token_urlsafe(24) for name in SECRET_NAMES}
    state = replace(old, ports=ports, secrets=words)
    save_state(home, state)
    return state


def save_state(home: Path, state: State) -> None:
    """Write the state atomically, readable by its owner only."""
    value = {
        "ports": dict(state.ports),
        "secrets": dict(state.secrets),
        "engine": state.engine,
        "prepared": state.prepared,
        "short_lived": state.short_lived,
        "s3": state.s3,
    }
    write_private(servers_folder(home) / "state.json", json.dumps(value, indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` atomically with mode 0600; no moment exists in which another user could read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    fresh.replace(path)
