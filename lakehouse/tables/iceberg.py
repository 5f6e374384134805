"""The Iceberg SQL catalog, opened so that concurrent processes do not fail and no credential reaches a message."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cachetools import LRUCache
from filelock import FileLock
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    TableRequirement,
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
    _update_table_metadata_log,
)
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.datetime import datetime_to_millis
from sqlalchemy import URL, Engine, create_engine, event, make_url, select, update
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from lakehouse.errors import ConfigError, UnavailableError
from lakehouse.logs import blank_secrets

CATALOG_NAME = "lakehouse"
BUSY_SECONDS = 120
INIT_ATTEMPTS = 5
KNOWN_TABLES = 64


def open_iceberg(url: str, warehouse: str | Path, properties: Mapping[str, str] = EMPTY_DICT) -> LakehouseCatalog:
    """The catalog named `lakehouse` in the database at `url`, with its tables created.

    `url` is `sqlite:///…` or `postgresql+psycopg://…`; `warehouse` is a folder or a URI such as `s3://bucket/prefix`;
    `properties` are PyIceberg's, such as `s3.endpoint`. Raises UnavailableError if the database does not answer and
    ConfigError for another kind of `url`.
    """
    place = str(warehouse)
    if "://" not in place:
        place = f"file://{Path(place).resolve()}"
    return LakehouseCatalog(CATALOG_NAME, **{**properties, "uri": url, "warehouse": place})


class LakehouseCatalog(SqlCatalog):
    """PyIceberg's SQL catalog with an engine made for several processes and a commit that leaves no loser behind."""

    def __init__(self, name: str, **properties: str) -> None:
        MetastoreCatalog.__init__(self, name, **properties)
        url = _parse_url(properties["uri"])
        self.engine = _make_engine(url)
        weakref.finalize(self, self.engine.dispose)
        self._io: FileIO | None = None
        self._known: LRUCache[str, TableMetadata] = LRUCache(KNOWN_TABLES)
        self._guard = threading.Lock()
        with _reporting(url), _creation_lock(url):
            self._create_once()

    def _create_once(self) -> None:
        for attempt in range(1, INIT_ATTEMPTS + 1):
            try:
                self._init_catalog()
                return
            except DBAPIError:
                # Two processes may create the tables of a new PostgreSQL database at the same moment.
                if attempt == INIT_ATTEMPTS:
                    raise
                time.sleep(0.1 * attempt)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Swap the table's metadata pointer; raises CommitFailedException if it moved since `table` was loaded.

        Unlike the base class, a metadata file that lost the swap is deleted, and the metadata that `table` holds is
        not read again.
        """
        if isinstance(table, StagedTable):
            return super().commit_table(table, requirements, updates)
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = updated_metadata(table, updates)
        if metadata is None:
            return CommitTableResponse(metadata=table.metadata, metadata_location=table.metadata_location)
        version = self._parse_metadata_version(table.metadata_location) + 1
        location = load_location_provider(metadata.location, metadata.properties).new_table_metadata_file_location(
            version
        )
        self._write_metadata(metadata, table.io, location)
        if not self._swap(table, location):
            with suppress(OSError):
                table.io.delete(location)
            name = ".".join(table.name())
            raise CommitFailedException(f"{name} was changed by somebody else since it was loaded")
        self._remember(location, metadata)
        return CommitTableResponse(metadata=metadata, metadata_location=location)

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table as it is now. Metadata files never change, so one that was read is not read again."""
        parts = self.identifier_to_tuple(identifier)
        location = self._location(".".join(parts[:-1]), parts[-1])
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(parts)}")
        with self._guard:
            metadata = self._known.get(location)
        if metadata is None:
            metadata = FromInputFile.table_metadata(self.file_io(location).new_input(location))
            self._remember(location, metadata)
        return Table(parts, metadata, location, self.file_io(location), self)

    def _location(self, namespace: str, name: str) -> str | None:
        query = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == namespace,
            IcebergTables.table_name == name,
        )
        if (only_tables := self._iceberg_type_filter()) is not None:
            query = query.where(only_tables)
        with Session(self.engine) as session:
            return session.scalar(query)

    def file_io(self, location: str) -> FileIO:
        """One file access for all tables, so that its connections are kept."""
        with self._guard:
            if self._io is None:
                self._io = load_file_io(self.properties, location)
            return self._io

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return self.file_io(location or self.properties["warehouse"])

    def _remember(self, location: str, metadata: TableMetadata) -> None:
        with self._guard:
            self._known[location] = metadata

    def point(self, name: str, old: str, location: str) -> None:
        """Let a table be what another metadata file says; CommitFailedException if it is not at `old` any more."""
        if not self._move(name, old, location):
            raise CommitFailedException(f"{name} was changed by somebody else")

    def _swap(self, table: Table, location: str) -> bool:
        return self._move(".".join(table.name()), table.metadata_location, location)

    def _move(self, table: str, old: str, location: str) -> bool:
        namespace, _, name = table.rpartition(".")
        change = (
            update(IcebergTables)
            .where(
                IcebergTables.catalog_name == self.name,
                IcebergTables.table_namespace == namespace,
                IcebergTables.table_name == name,
                IcebergTables.metadata_location == old,
            )
            .values(metadata_location=location, previous_metadata_location=old)
        )
        with Session(self.engine) as session:
            changed = session.execute(change).rowcount  # type: ignore[attr-defined]
            session.commit()
        return bool(changed)

    def locations(self) -> dict[str, str]:
        """Metadata location of every table by `namespace.name`, all from one moment."""
        query = select(IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name
        )
        if (only_tables := self._iceberg_type_filter()) is not None:
            query = query.where(only_tables)
        with Session(self.engine) as session:
            return {f"{space}.{name}": str(place) for space, name, place in session.execute(query)}


def updated_metadata(table: Table, updates: tuple[TableUpdate, ...]) -> TableMetadata | None:
    """The table's metadata with updates applied, None where they change nothing.

    PyIceberg's own function ends with a deep copy, which with a hundred table snapshots takes longer than the rest of
    a commit. Nothing here changes metadata in place, so versions may share their parts.
    """
    context = _TableMetadataUpdateContext()
    metadata = table.metadata
    for one in updates:
        metadata = _apply_table_update(one, metadata, context)
    if not context.has_changes():
        return None
    metadata = _update_table_metadata_log(metadata, table.metadata_location, table.metadata.last_updated_ms)
    if metadata.last_updated_ms == table.metadata.last_updated_ms:
        metadata = metadata.model_copy(update={"last_updated_ms": datetime_to_millis(datetime.now(UTC))})
    metadata.spec().check_compatible(metadata.schema())
    metadata.sort_order().check_compatible(metadata.schema())
    return metadata


def _parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise ConfigError(
            "the Iceberg catalog's database URL cannot be read; write sqlite:///… or postgresql+psycopg://…"
        ) from None
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ConfigError(
            f"the Iceberg catalog cannot live in {url.get_backend_name()!r}; write sqlite:///… or postgresql+psycopg://…"
        )
    return url


def _make_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    def prepare(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")

    event.listen(engine, "connect", prepare)
    return engine


@contextmanager
def _creation_lock(url: URL) -> Iterator[None]:
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        with FileLock(f"{url.database}.lock", timeout=BUSY_SECONDS):
            yield
    else:
        yield


@contextmanager
def _reporting(url: URL) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        place = url.render_as_string(hide_password=True)
        reason = blank_secrets(str(error.__cause__ or error).strip().splitlines()[0])
        raise UnavailableError(
            f"the Iceberg catalog's database at {place} does not answer ({reason}); "
            "start it or correct the address, then run again; `make status` shows which servers run"
        ) from None
