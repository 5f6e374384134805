"""Rows of tables, by partition, in the types that schemas declare."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from lakehouse.errors import UnknownNameError
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.columns import arrow_type, union_columns
from lakehouse.tables.producer import key_filter, key_in
from lakehouse.tables.split import Key
from lakehouse.tables.storage import plain_path

ALL_ROWS = AlwaysTrue()


def scan_rows(
    table: Table,
    specs: tuple[SchemaSpec, ...],
    keys: Collection[Key] | None,
    columns: Sequence[str] | None = None,
    *,
    snapshot_id: int | None = None,
    without: Collection[str] = (),
) -> pa.Table:
    """Rows of a table snapshot, of some partitions and columns where given; by default of the current one, all columns.

    Columns come in the table's order and in the types of now: one that came later is null. Files named in `without`,
    by plain path, are left out.
    """
    names = _known_names(table, columns)
    row_filter = AlwaysTrue() if keys is None else key_filter(table, keys)
    found = table.scan(row_filter=row_filter, snapshot_id=snapshot_id).plan_files()
    tasks = [task for task in found if keys is None or key_in(task.file) in keys]
    if without:
        tasks = [task for task in tasks if plain_path(task.file.file_path) not in without]
    return read_tasks(table, specs, tasks, names)


def read_file(table: Table, specs: tuple[SchemaSpec, ...], data_file: DataFile, columns: Sequence[str]) -> pa.Table:
    """Columns of one data file; deletes that belong to it are not applied."""
    return read_tasks(table, specs, [FileScanTask(data_file)], columns)


def read_tasks(
    table: Table,
    specs: tuple[SchemaSpec, ...],
    tasks: Sequence[FileScanTask],
    names: Sequence[str],
    row_filter: BooleanExpression = ALL_ROWS,
) -> pa.Table:
    """The rows of scan tasks that `row_filter` lets through, in the Arrow types that the schemas declare."""
    projected = table.schema().select(*names)
    rows = ArrowScan(table.metadata, table.io, projected, row_filter).to_table(tasks)
    declared = {column.name: column for column in union_columns(specs)}
    wanted = pa.schema(
        [pa.field(name, arrow_type(declared[name].tree), nullable=not declared[name].required) for name in names]
    )
    return rows.select(list(names)).cast(wanted)


def _known_names(table: Table, columns: Sequence[str] | None) -> list[str]:
    known = list(table.schema().column_names)
    top = [field.name for field in table.schema().fields]
    if columns is None:
        return top
    for name in columns:
        if name not in top:
            raise UnknownNameError(f"{'.'.join(table.name())} has no column {name!r}; it has {', '.join(known)}")
    return list(columns)
