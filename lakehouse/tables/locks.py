"""One lock per table around reload and commit, over all processes; a process that dies lets go of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine


class TableLocks(Protocol):
    """A lock per table name. Holding the same table again in the same thread is allowed."""

    def hold(self, table: str) -> AbstractContextManager[None]:
        """Hold the lock of `table`; raises ConflictError when somebody else keeps it too long."""


class FileLocks:
    """Locks as files below one directory, for processes of one machine."""

    def __init__(self, directory: Path, timeout: float = 600.0) -> None:
        self.directory = directory
        self.timeout = timeout

    def hold(self, table: str) -> AbstractContextManager[None]:
        raise NotImplementedError


class PostgresLocks:
    """Advisory locks of a PostgreSQL database, each on a connection of its own."""

    def __init__(self, engine: Engine, timeout: float = 600.0) -> None:
        self.timeout = timeout

    def hold(self, table: str) -> AbstractContextManager[None]:
        raise NotImplementedError
