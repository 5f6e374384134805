"""The views in Trino: the same as in DuckDB, kept beside the tables for everybody who reads there.

They run with the rights of whoever asks. Making them needs Trino's user for upkeep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial

from trino.exceptions import TrinoQueryError

from lakehouse.errors import UnavailableError
from lakehouse.query.locations import read_locations
from lakehouse.query.shapes import Shape, Shapes
from lakehouse.query.trino import TRINO_CATALOG, TrinoAccess, read_rows
from lakehouse.query.views import (
    EFFECTIVE_TABLE,
    VIEW_SUFFIXES,
    holds_records,
    literal,
    may_hold_records,
    quoted,
    view_sql,
)
from lakehouse.tables.filesystem import read_bytes
from lakehouse.tables.iceberg import LakehouseCatalog


def publish_views(access: TrinoAccess, iceberg: LakehouseCatalog) -> list[str]:
    """Make the views of every table of records, or mend those that are not as they should be; returns these.

    `access` is that of the user for upkeep. Raises UnavailableError where Trino does not answer or refuses.
    """
    locations = read_locations(iceberg)
    if EFFECTIVE_TABLE not in locations:
        return []
    shapes = Shapes(partial(_read, iceberg))
    try:
        wanted = dict(_views({name: shapes.of(at) for name, at in locations.items() if may_hold_records(name)}))
    finally:
        shapes.close()
    known = _marks(access)
    changed = [name for name, text in wanted.items() if known.get(name) != _mark(text)]
    for name in changed:
        comment = literal(_mark(wanted[name]))
        create = f"CREATE OR REPLACE VIEW {quoted(name)} COMMENT {comment} SECURITY INVOKER AS {wanted[name]}"
        try:
            list(read_rows(access, create))
        except TrinoQueryError as error:
            raise UnavailableError(
                f"Trino refuses to make the view {name} ({error.message}); its catalogs have to lead to the Iceberg "
                "catalog of this lake: `lakehouse doctor` shows what it sees. Then run `lakehouse views`"
            ) from error
    return changed


def _views(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, str]]:
    """Name and SQL of each view."""
    for table, shape in shapes.items():
        if holds_records(table, shape.columns):
            for suffix in VIEW_SUFFIXES:
                yield table + suffix, view_sql(table + suffix, _whole(table), _whole(EFFECTIVE_TABLE), shape)


def _read(iceberg: LakehouseCatalog, location: str) -> bytes:
    data = read_bytes(iceberg.file_io(location), location)
    if data is None:
        raise UnavailableError(
            f"the metadata file {location} is gone, so no views can be made; run `lakehouse restore`"
        )
    return data


def _whole(table: str) -> str:
    return f"{TRINO_CATALOG}.{quoted(table)}"


def _marks(access: TrinoAccess) -> dict[str, str]:
    """What the comments of views say of the SQL they were made from."""
    query = (
        "SELECT schema_name, table_name, comment FROM system.metadata.table_comments "
        f"WHERE catalog_name = {literal(access.catalog)} AND schema_name = 'clean' AND comment IS NOT NULL"
    )
    return {f"{schema}.{name}": comment for batch in read_rows(access, query) for schema, name, comment in batch}


def _mark(text: str) -> str:
    return f"made by lakehouse from {hashlib.sha256(text.encode()).hexdigest()[:32]}"
