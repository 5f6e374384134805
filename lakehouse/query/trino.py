"""Trino as a front door: a connection over its HTTP protocol, and rows in batches.

Not here: how Trino is configured (`infra/`), and any statement that changes a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import requests
from trino import dbapi, exceptions

from lakehouse.errors import UnavailableError

TRINO_CATALOG = "lakehouse"
_NO_ANSWER = (exceptions.TrinoConnectionError, exceptions.HttpError, requests.RequestException)


@dataclass(frozen=True, slots=True)
class TrinoAccess:
    """How to reach Trino; the default user may read only."""

    host: str
    port: int
    user: str = "reader"
    catalog: str = TRINO_CATALOG


def connect_trino(access: TrinoAccess) -> dbapi.Connection:
    """A DB-API connection whose schemas are the layers; times are in UTC. Statements fail where Trino is down."""
    return dbapi.Connection(
        host=access.host,
        port=access.port,
        user=access.user,
        catalog=access.catalog,
        source="lakehouse",
        timezone="UTC",
        max_attempts=2,
        request_timeout=120,
    )


def read_rows(access: TrinoAccess, query: str, batch_rows: int = 2_000) -> Iterator[list[list[Any]]]:
    """Rows of a query in batches, as Python values; memory holds one batch.

    A query that fails at its start for a reason of Trino's own is asked again once: after an outage of the database its
    connections are stale. Raises UnavailableError where Trino does not answer, `trino.exceptions.TrinoQueryError` for a
    refused statement.
    """
    with _answering(access), ExitStack() as stack:
        try:
            cursor, batch = _start(stack, access, query, batch_rows)
        except exceptions.TrinoQueryError as error:
            if error.error_type == "USER_ERROR":
                raise
            cursor, batch = _start(stack, access, query, batch_rows)
        while batch:
            yield batch
            batch = cursor.fetchmany(batch_rows)


def _start(stack: ExitStack, access: TrinoAccess, query: str, batch_rows: int) -> tuple[dbapi.Cursor, list[list[Any]]]:
    """A cursor that has the first batch of a query; its connection is closed with `stack`."""
    cursor = stack.enter_context(connect_trino(access)).cursor()
    cursor.execute(query)
    return cursor, cursor.fetchmany(batch_rows)


@contextmanager
def _answering(access: TrinoAccess) -> Iterator[None]:
    try:
        yield
    except _NO_ANSWER as error:
        raise UnavailableError(
            f"Trino at {access.host}:{access.port} does not answer ({type(error).__name__}); "
            "start it (`make up`) or leave this engine out"
        ) from error
