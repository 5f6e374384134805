"""The ledger's database: opening it, migrating it, and the two kinds of transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from filelock import FileLock
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, UnavailableError

MIGRATIONS = Path(__file__).parent / "migrations"
MIGRATION_LOCK = 7_061_979_001
BUSY_TIMEOUT_S = 60


class Ledger:
    """Tasks, slots, batches and partitions in one SQL database. Safe to share between threads and processes."""

    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock

    @classmethod
    def open(cls, url: str, clock: Clock) -> Ledger:
        """The ledger at `sqlite:///path` or `postgresql+psycopg://…`, migrated to the newest revision.

        Raises UnavailableError when the database does not answer and ConfigError for a URL or revision it cannot use.
        """
        engine = _create_engine(url)
        ledger = cls(engine, clock)
        with _unavailable_named(engine.url):
            _migrate(engine)
        return ledger

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection in a transaction that only reads."""
        with _unavailable_named(self.engine.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A connection in a transaction that writes: committed at the end, rolled back on any error.

        On SQLite it holds the database's one write lock from its first statement on, so it never deadlocks.
        """
        with _unavailable_named(self.engine.url), self.engine.connect() as plain:
            connection = plain.execution_options(ledger_write=True)
            with connection.begin():
                yield connection

    def insert(self, table: sa.Table) -> Any:
        """An INSERT of this database's dialect, which knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
        return postgresql.insert(table) if self.is_postgres else sqlite.insert(table)

    @property
    def is_postgres(self) -> bool:
        """Whether rows can be locked one by one."""
        return self.engine.dialect.name == "postgresql"


def describe_database(url: URL) -> str:
    """Where the database is, without user or password."""
    if url.get_backend_name() == "sqlite":
        return f"SQLite file {url.database}"
    return f"{url.get_backend_name()} at {url.host}:{url.port or 5432}, database {url.database}"


@contextmanager
def _unavailable_named(url: URL) -> Iterator[None]:
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        # The driver's own text may hold the user or the whole connection string, so only its kind is passed on.
        cause = type(getattr(error, "orig", None) or error).__name__
        raise UnavailableError(
            f"ledger does not answer: {describe_database(url)} ({cause}); start it or correct "
            "LAKEHOUSE_DATABASE_URL, then run again: nothing that was collected is lost"
        ) from None
    except sa.exc.DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise UnavailableError(
            f"ledger hung up: {describe_database(url)}; run again once it answers: nothing that was collected is lost"
        ) from None


def _create_engine(text: str) -> sa.Engine:
    try:
        url = make_url(text)
    except sa.exc.ArgumentError:
        raise ConfigError(
            "the ledger's URL cannot be read; write sqlite:///path or postgresql+psycopg://user:password@host:port/name"
        ) from None
    if url.get_backend_name() == "sqlite":
        return _create_sqlite(url)
    if url.drivername == "postgresql+psycopg":
        return sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, hide_parameters=True)
    raise ConfigError(f"the ledger cannot use {url.drivername}; write sqlite:///path or postgresql+psycopg://…")


def _create_sqlite(url: URL) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise ConfigError("the ledger needs a file that processes can share; write sqlite:///path")
    _prepare_file(Path(url.database))
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, hide_parameters=True)

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("ledger_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _prepare_file(path: Path) -> None:
    """Make the file and put it in WAL mode, one process at a time: the switch does not wait for others."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.migrate.lock"), closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as plain:
            if plain.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                plain.execute("PRAGMA journal_mode=WAL")
    except (OSError, sqlite3.OperationalError) as error:
        raise UnavailableError(
            f"ledger file {path} cannot be opened: {error}; check the folder's rights and the disk, then run again"
        ) from error
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"ledger file {path} is no SQLite database; move it away or name another file") from error


def _migrate(engine: sa.Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    head = ScriptDirectory.from_config(config).get_current_head()
    if _revision(engine) == head:
        return
    with _migration_lock(engine):
        if _revision(engine) == head:
            return
        with engine.connect() as plain, (connection := plain.execution_options(ledger_write=True)).begin():
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise ConfigError(
                    f"ledger at {describe_database(engine.url)} has a revision this version does not know ({error}); "
                    "install the version that wrote it, or a newer one"
                ) from None


def _revision(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _migration_lock(engine: sa.Engine) -> AbstractContextManager[Any]:
    if engine.dialect.name == "sqlite":
        return FileLock(f"{engine.url.database}.migrate.lock")
    return _advisory_lock(engine)


@contextmanager
def _advisory_lock(engine: sa.Engine) -> Iterator[None]:
    with engine.connect() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_lock(MIGRATION_LOCK)))
        try:
            yield
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(MIGRATION_LOCK)))
            connection.commit()
