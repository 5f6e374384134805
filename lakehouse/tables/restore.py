"""Earlier data files brought back: copied within the store to new names, never added again under their old paths."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from lakehouse.errors import DataError, UnknownNameError
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.content import content_hash
from lakehouse.tables.filesystem import copy_file
from lakehouse.tables.names import FileName, How, parse_name
from lakehouse.tables.scan import read_file
from lakehouse.tables.split import Key
from lakehouse.tables.storage import plain_path
from lakehouse.tables.writer import describe_file, new_location


def copy_files(table: Table, specs: tuple[SchemaSpec, ...], key: Key, paths: Sequence[str]) -> list[DataFile]:
    """Data files of one partition that are copies of `paths`, in their order; nothing refers to them yet.

    Raises UnknownNameError for a file that is gone, DataError for one that is not of this table and partition.
    """
    if len(set(paths)) != len(paths):
        raise DataError(f"cannot restore {_place(table, key)}: a file is named twice; name each file once")
    names = [_name_of_copy(table, specs, key, path) for path in paths]
    copies = []
    for path, name in zip(paths, names, strict=True):
        target = new_location(table, key, name)
        copy_file(table.io, path, target)
        copies.append(describe_file(table, target, key))
    return copies


def _name_of_copy(table: Table, specs: tuple[SchemaSpec, ...], key: Key, path: str) -> str:
    if not plain_path(path).startswith(f"{plain_path(table.location()).rstrip('/')}/"):
        raise DataError(f"cannot restore {_place(table, key)}: {path} does not lie below {table.location()}")
    try:
        _check_partition(table, key, path)
        known = parse_name(path)
        if known is not None:
            return FileName(How.COPY, known.fingerprint, known.checksum).new()
        columns = [one.name for one in table.schema().fields]
        checksum = content_hash(read_file(table, specs, describe_file(table, path, key), columns))
    except FileNotFoundError:
        raise UnknownNameError(
            f"cannot restore {_place(table, key)}: {path} is gone; it was removed by upkeep after no table snapshot "
            "and no recorded fix needed it. Make the partition anew from its raw data instead"
        ) from None
    return FileName(How.COPY, checksum, checksum).new()


def _check_partition(table: Table, key: Key, path: str) -> None:
    names = [one.name for one in table.spec().fields]
    with table.io.new_input(path).open() as stream:
        found = pq.read_table(stream, columns=names) if names else None
    for name, wanted in zip(names, key, strict=True):
        values = pc.unique(found.column(name)).to_pylist() if found is not None else []
        if values != [wanted]:
            raise DataError(f"cannot restore {_place(table, key)}: {path} holds rows of {name} {values}")


def _place(table: Table, key: Key) -> str:
    return f"{'/'.join(map(str, key)) or 'the rows'} of {'.'.join(table.name())}"
