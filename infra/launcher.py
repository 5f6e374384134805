"""Starts, stops and describes the servers as processes on 127.0.0.1, with all their data below one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from infra.processes import ServerProcess
from infra.servers import minio, postgres, seaweedfs, trino
from infra.state import (
    PORT_NAMES,
    State,
    free_port,
    load_or_make_state,
    load_state,
    port_is_free,
    save_state,
    servers_folder,
    write_private,
)
from lakehouse.errors import ConfigError
from lakehouse.ledger.ledger import Ledger
from lakehouse.settings import Settings, load_settings

Say = Callable[[str], None]
TITLES = {"postgres": "PostgreSQL", "minio": "MinIO", "seaweedfs": "SeaweedFS", "trino": "Trino"}
MODULES = {"postgres": postgres, "minio": minio, "seaweedfs": seaweedfs, "trino": trino}
S3_SERVERS = {"minio": minio, "seaweedfs": seaweedfs}
PATIENCE_S = {"trino": 600}


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server: `state` is running, starting, stopped or died; `log_tail` is given for one that died."""

    name: str
    state: str
    address: str
    pid: int | None
    log: Path
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of one home folder and how to reach them."""

    home: Path
    state: State

    @property
    def env(self) -> dict[str, str]:
        """The `LAKEHOUSE_…` variables that the server profile reads, the profile itself left out."""
        return server_env(self.state)

    def settings(self, **overrides: Any) -> Settings:
        """Settings of the server profile for these servers."""
        values = {name.removeprefix("LAKEHOUSE_").lower(): value for name, value in self.env.items()}
        return load_settings(**{**values, "profile": "server", "home": self.home, **overrides})

    def stop(self) -> None:
        """Stop all servers."""
        stop(self.home)

    def process(self, name: str) -> ServerProcess:
        """The process of `postgres`, `trino`, or the S3 server: `state.s3`."""
        return server_process(self.home, name)

    def stop_one(self, name: str) -> None:
        """Stop one server, as an outage would; `start_one` brings it back."""
        self.process(name).stop(by=MODULES[name].STOP_SIGNAL)

    def start_one(self, name: str) -> None:
        """Start one server again on its old port and wait until it is ready."""
        _start_one(self.home, name, self.state)
        _wait_for(self.home, name, self.state)

    def admin_database_url(self, database: str = "postgres") -> str:
        """libpq URL of PostgreSQL's administrator."""
        return postgres.admin_url(self.state.ports["postgres"], self.state.secrets, database)

    def s3_secret(self, user: str) -> str:
        """Secret key of `collector`, `pipeline`, `reader` or `upkeep`; `lakehouse-root` is the administrator."""
        return self.state.secrets["minio_root" if user == minio.ROOT else f"s3_{user}"]


def start(
    home: Path, *, trino: bool = True, short_lived: bool = False, s3: str | None = None, say: Say = lambda _: None
) -> Servers:
    """Start what does not run yet and wait until it is ready; raises UnavailableError with the log of a dead server.

    Trino takes longest and needs the others only later, so all start at once. If one fails, those that this call
    started are stopped again. Tests start `short_lived` ones, see `State`. `s3` chooses the S3 server; ConfigError if
    this home already has its data in another.
    """
    with _alone(home):
        state = replace(_state_with(home, s3), engine="processes", short_lived=short_lived)
        state = _with_usable_ports(home, state, say)
        names = state.names if trino else state.names[:2]
        started: list[str] = []
        try:
            for name in names:
                if server_process(home, name).pid() is None:
                    _tell_of_crash(home, name, say)
                    _start_one(home, name, state)
                    started.append(name)
                    say(f"{TITLES[name]} is starting on 127.0.0.1:{state.ports[name]}")
            state = _make_ready(home, names, state, say)
        except BaseException:
            for name in started:
                server_process(home, name).stop(by=MODULES[name].STOP_SIGNAL)
            raise
    return Servers(home, state)


def stop(home: Path, say: Say = lambda _: None) -> list[str]:
    """Stop the servers of `home`, Trino first; the names of those that ran."""
    state = load_state(home)
    if state is None:
        return []
    stopped = []
    with _alone(home):
        for name in reversed(state.names):
            if server_process(home, name).stop(by=MODULES[name].STOP_SIGNAL):
                say(f"{TITLES[name]} stopped")
                stopped.append(name)
    return stopped


def read_status(home: Path) -> list[ServerStatus]:
    """What runs where, without changing anything."""
    state = load_state(home)
    return [_status_of(home, name, state) for name in (state or State({}, {})).names]


def server_env(state: State) -> dict[str, str]:
    """The variables of `server.env`."""
    ports, secrets = state.ports, state.secrets
    env = {
        "LAKEHOUSE_DATABASE_URL": postgres.owner_url(ports["postgres"], secrets, "lakehouse", driver="+psycopg"),
        "LAKEHOUSE_ICEBERG_URL": postgres.owner_url(ports["postgres"], secrets, "iceberg", driver="+psycopg"),
        "LAKEHOUSE_DAGSTER_URL": postgres.owner_url(ports["postgres"], secrets, "dagster"),
        "LAKEHOUSE_S3_ENDPOINT": f"http://127.0.0.1:{ports[state.s3]}",
        "LAKEHOUSE_S3_REGION": minio.REGION,
        "LAKEHOUSE_TRINO_HOST": "127.0.0.1",
        "LAKEHOUSE_TRINO_PORT": str(ports["trino"]),
        "LAKEHOUSE_TRINO_USER": "reader",
    }
    for user in ("collector", "pipeline", "reader"):
        env[f"LAKEHOUSE_{user.upper()}_ACCESS_KEY"] = user
        env[f"LAKEHOUSE_{user.upper()}_SECRET_KEY"] = secrets[f"s3_{user}"]
    return env


def prepare(home: Path, state: State) -> State:
    """Make users, databases, buckets and the ledger, save `server.env`; doing it twice changes nothing."""
    postgres.prepare(state.ports["postgres"], state.secrets)
    S3_SERVERS[state.s3].prepare(state.ports, state.secrets)
    settings = Servers(home, state).settings()
    Ledger.open(server_env(state)["LAKEHOUSE_DATABASE_URL"], settings.clock).close()
    lines = "".join(f"{name}={value}\n" for name, value in server_env(state).items())
    write_private(home / "server.env", lines)
    state = replace(state, prepared=True)
    save_state(home, state)
    return state


def server_process(home: Path, name: str) -> ServerProcess:
    """The process of one server below `home`."""
    return ServerProcess(TITLES[name], servers_folder(home) / name)


def _start_one(home: Path, name: str, state: State) -> None:
    process = server_process(home, name)
    match name:
        case "postgres":
            postgres.start(process, state.ports[name], state.secrets, short_lived=state.short_lived)
        case "trino":
            trino.start(process, state.ports, state.secrets, s3=state.s3, short_lived=state.short_lived)
        case _:
            S3_SERVERS[name].start(process, state.ports, state.secrets)


def _wait_for(home: Path, name: str, state: State) -> None:
    server_process(home, name).wait_until(_question(name, state), seconds=PATIENCE_S.get(name, 120))


def _question(name: str, state: State) -> Callable[[], bool]:
    port = state.ports[name]
    match name:
        case "postgres":
            return postgres.is_ready(port, state.secrets)
        case "trino":
            return trino.is_ready(port)
        case "minio":
            return minio.is_ready(state.ports, state.secrets)
        case _:
            return seaweedfs.is_ready(state.ports, state.secrets)


def _make_ready(home: Path, names: tuple[str, ...], state: State, say: Say) -> State:
    for name in names:
        if name == "trino" and not state.prepared:
            state = prepare(home, state)
        _wait_for(home, name, state)
        say(f"{TITLES[name]} runs on 127.0.0.1:{state.ports[name]}")
    return state if state.prepared else prepare(home, state)


def _state_with(home: Path, s3: str | None) -> State:
    old = load_state(home)
    if s3 is not None and s3 not in S3_SERVERS:
        raise ConfigError(f"{s3!r} is no S3 server that can be started; choose {' or '.join(S3_SERVERS)}")
    if s3 is not None and old is not None and old.prepared and old.s3 != s3:
        raise ConfigError(f"{home} has its data in {TITLES[old.s3]}; choose another home to use {TITLES[s3]}")
    chosen = s3 or (old.s3 if old else "minio")
    more = seaweedfs.PORTS if chosen == "seaweedfs" else ()
    return replace(load_or_make_state(home, (*PORT_NAMES, *more)), s3=chosen)


def _with_usable_ports(home: Path, state: State, say: Say) -> State:
    """A server that does not run gets another port if somebody else took its own."""
    ports = dict(state.ports)
    for name in state.names:
        if server_process(home, name).pid() is not None:
            continue
        for key in (key for key in ports if key == name or key.startswith(f"{name}_")):
            if not port_is_free(ports[key]):
                fresh = free_port(frozenset(ports.values()))
                say(f"port {ports[key]} of {TITLES[name]} is taken by another program; using {fresh}")
                ports[key] = fresh
    if ports == dict(state.ports):
        return state
    moved = replace(state, ports=ports, prepared=False)
    save_state(home, moved)
    return moved


def _tell_of_crash(home: Path, name: str, say: Say) -> None:
    process = server_process(home, name)
    if process.died():
        say(f"{TITLES[name]} had died; the end of {process.log}:\n{process.log_tail()}")


def _status_of(home: Path, name: str, state: State | None) -> ServerStatus:
    process = server_process(home, name)
    address = f"127.0.0.1:{state.ports[name]}" if state else ""
    pid = process.pid()
    if pid is not None and state is not None:
        ready = _question(name, state)()
        return ServerStatus(name, "running" if ready else "not answering", address, pid, process.log)
    if process.died():
        return ServerStatus(name, "died", address, None, process.log, process.log_tail())
    return ServerStatus(name, "stopped", address, None, process.log)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Two starts or stops of one home wait for each other."""
    folder = servers_folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    with FileLock(folder / "lock"):
        yield
