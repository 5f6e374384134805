"""Where every Iceberg table stands right now, taken in one SELECT so that several tables are read as of one instant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError

from lakehouse.errors import ConfigError, UnavailableError


def read_locations(iceberg: Catalog) -> Mapping[str, str]:
    """Table name (`raw.fetches`) to the address of its newest metadata file, for all tables, of one instant.

    Raises UnavailableError where the catalog's database does not answer.
    """
    if not isinstance(iceberg, SqlCatalog):
        raise ConfigError(f"tables are found through an Iceberg SQL catalog, got {type(iceberg).__name__}")
    wanted = select(IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == iceberg.name,
        IcebergTables.metadata_location.is_not(None),
        or_(IcebergTables.iceberg_type == "TABLE", IcebergTables.iceberg_type.is_(None)),
    )
    try:
        with iceberg.engine.connect() as connection:
            rows = connection.execute(wanted).all()
    except SQLAlchemyError as error:
        raise UnavailableError(
            f"the Iceberg catalog {iceberg.name} could not be read ({type(error).__name__}); "
            "check that its database runs (`make status`)"
        ) from error
    return {f"{namespace}.{name}": str(location) for namespace, name, location in sorted(map(tuple, rows))}


def near_names(asked: str, names: Iterable[str]) -> str:
    """A hint for a table that does not exist: names near to `asked`, else all names."""
    names = sorted(names)
    if not names:
        return "this lake has no tables yet; materialize something first"
    short = {name.partition(".")[2]: name for name in names}
    asked = asked.lower()
    near = difflib.get_close_matches(asked, names, n=3, cutoff=0.6)
    near += [short[match] for match in difflib.get_close_matches(asked.rpartition(".")[2], short, n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"tables are: {', '.join(names)}"
