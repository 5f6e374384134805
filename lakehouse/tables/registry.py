"""Registered schemas as Iceberg and Arrow schemas, and the tables made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakehouse.specs.schema import SchemaSpec

if TYPE_CHECKING:
    from lakehouse.specs.loader import Catalog


def iceberg_schema(specs: Sequence[SchemaSpec]) -> Schema:
    """The Iceberg schema of a table: the union of its dataset's versions (ascending), with fresh field ids."""
    raise NotImplementedError


def arrow_schema(spec: SchemaSpec) -> pa.Schema:
    """The Arrow schema of one version, with the columns that the registry adds, in the table's order."""
    raise NotImplementedError


def ensure_table(iceberg: IcebergCatalog, catalog: Catalog, table: str) -> Table:
    """The Iceberg table `layer.name`, created or evolved so that every version in `catalog` is registered.

    Callers that may create or evolve hold the table's lock (`Committer.table` does). Raises CatalogError if a
    registered version has changed or is gone, UnknownNameError for a table that no schema declares.
    """
    raise NotImplementedError
