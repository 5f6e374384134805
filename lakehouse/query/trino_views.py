"""The views in Trino: the same as in DuckDB, kept beside the tables for everybody who reads there.

They run with the rights of whoever asks. Making them needs Trino's user for upkeep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from pyiceberg.catalog import Catalog

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


def publish_views(access: TrinoAccess, iceberg: Catalog, properties: Mapping[str, str]) -> list[str]:
    """Make the views of every table of records, or mend those that are not as they should be; returns these.

    `access` is that of the user for upkeep, `properties` those to read metadata files with. Raises UnavailableError
    where Trino does not answer.
    """
    locations = read_locations(iceberg)
    if EFFECTIVE_TABLE not in locations:
        return []
    shapes = Shapes(properties)
    try:
        wanted = dict(_views({name: shapes.of(at) for name, at in locations.items() if may_hold_records(name)}))
    finally:
        shapes.close()
    known = _marks(access)
    changed = [name for name, text in wanted.items() if known.get(name) != _mark(text)]
    for name in changed:
        comment = literal(_mark(wanted[name]))
        create = f"CREATE OR REPLACE VIEW {quoted(name)} COMMENT {comment} SECURITY INVOKER AS {wanted[name]}"
        list(read_rows(access, create))
    return changed


def _views(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, str]]:
    """Name and SQL of each view."""
    for table, shape in shapes.items():
        if holds_records(table, shape.columns):
            for suffix in VIEW_SUFFIXES:
                yield table + suffix, view_sql(table + suffix, _whole(table), _whole(EFFECTIVE_TABLE), shape)


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
