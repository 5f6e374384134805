"""PostgreSQL: started as an unprivileged user, with one database and one owner for each thing that needs one.

Trino has two roles of its own: one that only reads the Iceberg catalog's tables, one for upkeep that may change them.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from infra.processes import Launch, ServerProcess
from infra.programs import postgres_bin
from lakehouse.errors import UnavailableError

ADMIN = "lakehouse_admin"
OWNERS = ("lakehouse", "iceberg", "dagster")
TRINO_ROLES = ("trino_reader", "trino_upkeep")
STOP_SIGNAL = signal.SIGINT
INITDB_OPTIONS = ("--encoding", "UTF8", "--locale", "C")
SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200", "timezone": "UTC"}


def start(process: ServerProcess, port: int, secrets: Mapping[str, str], *, short_lived: bool = False) -> None:
    """Make the cluster if there is none, and start the server on 127.0.0.1:`port`."""
    programs = postgres_bin()
    if programs is None:
        raise UnavailableError("PostgreSQL is not installed; run `python -m infra install`")
    with _opened(process.folder / "data", server_user()) as data:
        if not (data.folder / "PG_VERSION").exists():
            _make_cluster(programs, data, secrets["postgres_admin"])
        settings = {**SETTINGS, "fsync": "off"} if short_lived else SETTINGS
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        command = [str(programs / "postgres"), "-D", data.name, "-p", str(port), *options]
        process.start(Launch(command, {}, Path("/"), data.user, [data.descriptor]))


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The data folder and the user whom it belongs to; `name` is what the server calls it."""

    folder: Path
    user: tuple[int, int] | None
    descriptor: int

    @property
    def name(self) -> str:
        """The folder's path, or its open descriptor for another user.

        As root the server runs as somebody who often may not enter the folders above (a home or temporary folder of
        mode 0700). Named through an open descriptor, only the folder's own permissions count.
        """
        return str(self.folder) if self.user is None else f"/proc/self/fd/{self.descriptor}"


@contextmanager
def _opened(folder: Path, user: tuple[int, int] | None) -> Iterator[DataFolder]:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    if user is not None:
        os.chown(folder, *user)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield DataFolder(folder, user, descriptor)
    finally:
        os.close(descriptor)


def server_user() -> tuple[int, int] | None:
    """The uid and gid to run as: PostgreSQL refuses root; None means that we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise UnavailableError("PostgreSQL can't run as root and there is neither a user postgres nor nobody; add one")


def _make_cluster(programs: Path, data: DataFolder, password: str) -> None:
    read, write = os.pipe()
    os.write(write, password.encode() + b"\n")
    os.close(write)
    if data.user is not None:
        os.fchown(read, *data.user)
    options = [*INITDB_OPTIONS, "--auth", "scram-sha-256", "--no-instructions"]
    try:
        done = subprocess.run(
            [str(programs / "initdb"), "-D", data.name, "-U", ADMIN, "--pwfile", f"/proc/self/fd/{read}", *options],
            user=data.user[0] if data.user else None,
            group=data.user[1] if data.user else None,
            extra_groups=[] if data.user else None,
            pass_fds=[data.descriptor, read],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(read)
    if done.returncode != 0:
        raise UnavailableError(f"initdb could not make {data.folder}:\n{done.stdout}{done.stderr}")


def admin_url(port: int, secrets: Mapping[str, str], database: str = "postgres") -> str:
    """libpq URL of the administrator, who makes databases and roles and is used by nothing else."""
    return f"postgresql://{ADMIN}:{secrets['postgres_admin']}@127.0.0.1:{port}/{database}"


def owner_url(port: int, secrets: Mapping[str, str], owner: str, *, driver: str = "") -> str:
    """URL of the database named after its owner; `driver` such as `+psycopg` is SQLAlchemy's."""
    return f"postgresql{driver}://{owner}:{secrets[f'postgres_{owner}']}@127.0.0.1:{port}/{owner}"


def is_ready(port: int, secrets: Mapping[str, str]) -> Callable[[], bool]:
    """A question for `wait_until`: does the server accept the administrator's connection?"""

    def answer() -> bool:
        try:
            psycopg.connect(admin_url(port, secrets), connect_timeout=3).close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise UnavailableError(
                    f"PostgreSQL on 127.0.0.1:{port} does not know the saved password; put the `state.json` back that "
                    "belongs to its data, or move the data folder away to begin anew"
                ) from error
            return False
        return True

    return answer


def prepare(port: int, secrets: Mapping[str, str]) -> None:
    """Make roles, databases, the Iceberg catalog's tables and their grants; doing it twice changes nothing."""
    with psycopg.connect(admin_url(port, secrets), autocommit=True) as admin:
        for role in (*OWNERS, *TRINO_ROLES):
            _ensure_role(admin, role, secrets[f"postgres_{role}"])
        for name in OWNERS:
            _ensure_database(admin, name)
        admin.execute("GRANT CONNECT ON DATABASE iceberg TO trino_reader, trino_upkeep")
    make_iceberg_tables(owner_url(port, secrets, "iceberg", driver="+psycopg"))
    with psycopg.connect(owner_url(port, secrets, "iceberg"), autocommit=True) as owner:
        owner.execute((Path(__file__).parent.parent / "postgres" / "trino_roles.sql").read_bytes())


def make_iceberg_tables(url: str) -> None:
    """The two tables of the Iceberg SQL catalog, made the way PyIceberg makes them."""
    from pyiceberg.catalog.sql import SqlCatalog

    SqlCatalog("lakehouse", uri=url).close()


def _ensure_role(admin: psycopg.Connection, role: str, password: str) -> None:
    known = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    verb = sql.SQL("ALTER") if known else sql.SQL("CREATE")
    statement = sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}")
    admin.execute(statement.format(verb, sql.Identifier(role), sql.Literal(password)))


def _ensure_database(admin: psycopg.Connection, owner: str) -> None:
    name = sql.Identifier(owner)
    if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [owner]).fetchone():
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, name))
    admin.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
