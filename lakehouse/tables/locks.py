"""One lock per table around reload and commit, over all processes; a process that dies lets go of it."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lakehouse.errors import ConflictError, UnavailableError
from lakehouse.logs import blank_secrets

LOCK_NOT_AVAILABLE = "55P03"


class TableLocks(Protocol):
    """A lock per table name. Holding the same table again in the same thread is allowed."""

    def hold(self, table: str) -> AbstractContextManager[None]:
        """Hold the lock of `table`; raises ConflictError when somebody else keeps it too long."""


class _Held(threading.local):
    """The tables that the current thread holds already."""

    def __init__(self) -> None:
        self.tables: set[str] = set()

    @contextmanager
    def entered(self, table: str) -> Iterator[bool]:
        """Yield whether the lock has to be taken; False where this thread has it."""
        if table in self.tables:
            yield False
            return
        self.tables.add(table)
        try:
            yield True
        finally:
            self.tables.discard(table)


class FileLocks:
    """Locks as files below one directory, for processes of one machine. `timeout` is in seconds."""

    def __init__(self, directory: Path, timeout: float = 600.0) -> None:
        self.directory = directory
        self.timeout = timeout
        self._held = _Held()

    @contextmanager
    def hold(self, table: str) -> Iterator[None]:
        """Hold the lock of `table`; raises ConflictError after `timeout`."""
        with self._held.entered(table) as take:
            if not take:
                yield
                return
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.directory / f"{table}.lock", timeout=self.timeout, poll_interval=0.005)
            try:
                lock.acquire()
            except Timeout:
                raise _kept_too_long(table, self.timeout, f"the processes that have {lock.lock_file} open") from None
            try:
                yield
            finally:
                lock.release()


class PostgresLocks:
    """Advisory locks of a PostgreSQL database, each on a connection of its own. `timeout` is in seconds.

    The server lets go of a lock when its connection ends, so a killed process leaves none behind. Only the address of
    `engine` is used: waiting for a lock never takes a connection that the holder may need.
    """

    def __init__(self, engine: Engine, timeout: float = 600.0) -> None:
        self.timeout = timeout
        self._engine = create_engine(
            engine.url,
            isolation_level="AUTOCOMMIT",
            pool_pre_ping=True,
            pool_size=2,
            max_overflow=200,
            connect_args={"connect_timeout": 10, "application_name": "lakehouse table lock"},
        )
        weakref.finalize(self, self._engine.dispose)
        self._held = _Held()

    @contextmanager
    def hold(self, table: str) -> Iterator[None]:
        """Hold the lock of `table`; raises ConflictError after `timeout`, UnavailableError without a server."""
        with self._held.entered(table) as take:
            if not take:
                yield
                return
            connection = self._acquire(table)
            try:
                yield
            finally:
                _release(connection, lock_key(table))

    def _acquire(self, table: str) -> Connection:
        connection = None
        try:
            connection = self._engine.connect()
            connection.execute(text(f"SET lock_timeout = {int(self.timeout * 1000)}"))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": lock_key(table)})
        except SQLAlchemyError as error:
            if connection is not None:
                connection.invalidate()
                connection.close()
            if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
                holder = "the sessions that hold advisory locks in pg_locks"
                raise _kept_too_long(table, self.timeout, holder) from None
            reason = blank_secrets(str(error.__cause__ or error).strip().splitlines()[0])
            raise UnavailableError(
                f"cannot lock table {table}: the database does not answer ({reason}); start it, then run again"
            ) from None
        return connection


def lock_key(table: str) -> int:
    """The advisory lock key of a table: a signed 64-bit number made from its name."""
    return int.from_bytes(hashlib.sha256(f"lakehouse table {table}".encode()).digest()[:8], signed=True)


def _release(connection: Connection, key: int) -> None:
    try:
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})
    except SQLAlchemyError:
        # The connection is gone, and the lock with it; the commit was guarded by the catalog's own swap.
        connection.invalidate()
    finally:
        connection.close()


def _kept_too_long(table: str, timeout: float, holders: str) -> ConflictError:
    return ConflictError(
        f"cannot lock table {table}: somebody else has kept it for more than {timeout:g} s; look for {holders}, "
        "end the one that hangs, then run again"
    )
