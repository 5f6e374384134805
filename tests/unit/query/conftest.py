"""A small lake on local files, made with PyIceberg alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakehouse.tables.iceberg import open_iceberg
from tests.unit.query.sample import (
    DAY,
    POINTER_FIELDS,
    RECORD_FIELDS,
    append,
    kind_rows,
    kinds_schema,
    make_table,
    record,
)


@pytest.fixture
def iceberg(tmp_path: Path) -> Iterator[SqlCatalog]:
    """An empty Iceberg catalog with the four layers."""
    catalog = open_iceberg(f"sqlite:///{tmp_path / 'iceberg.db'}", tmp_path / "warehouse")
    for layer in ("raw", "clean", "feature", "meta"):
        catalog.create_namespace(layer)
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def kinds(iceberg: SqlCatalog) -> Table:
    """`raw.kinds`: every column type, awkward values and nulls, in two files."""
    table = iceberg.create_table("raw.kinds", kinds_schema())
    for rows in (kind_rows(), [{"id": 9}]):
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    return table


@pytest.fixture
def articles(iceberg: SqlCatalog) -> Table:
    """`clean.articles` in two schema versions of two days, and `meta.effective` that points at one of each day."""
    table = make_table(iceberg, "clean.articles", RECORD_FIELDS, partitioned=True)
    pointers = make_table(iceberg, "meta.effective", POINTER_FIELDS)
    days = [(DAY, 2), (DAY + dt.timedelta(days=1), 1)]
    append(table, [record(day, version, page) for day, _ in days for version in (1, 2) for page in "ab"])
    append(
        pointers,
        [{"dataset": "articles", "source": "news", "dt": day, "schema_version": version} for day, version in days],
    )
    return table
