"""Data files: frames of partitions as Parquet with the statistics that Iceberg keeps.

PyIceberg's `write_file` works out schema, statistics plan and partition path anew for each file and asks the store for
each size. Here that is done once a call; the bytes, field ids and statistics are the same (contract tests compare).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    ParquetFormatModel,
    StatisticsCollector,
    _get_parquet_writer_kwargs,
    _to_requested_schema,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import Record
from pyiceberg.utils.concurrent import ExecutorFactory

from lakehouse.tables.split import EPOCH, Key

WRITE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file to write: rows of one partition under a name of its own (without suffix)."""

    key: Key
    frame: pa.Table
    name: str


def write_files(table: Table, files: Sequence[NewFile]) -> list[DataFile]:
    """Write Parquet files below their partition's folder, in order; nothing refers to them yet."""
    if not files:
        return []
    layout = _Layout.of(table, files[0].frame.schema)
    each = ExecutorFactory.get_or_create().map if len(files) > 1 else map
    return list(each(layout.write, files))


def describe_file(table: Table, path: str, key: Key) -> DataFile:
    """A data file for a Parquet file that lies in the store already, with statistics from its footer."""
    source = table.io.new_input(path)
    with source.open() as stream:
        footer = pq.read_metadata(stream)
    return _Layout.of(table, footer.schema.to_arrow_schema()).describe(path, key, len(source), footer)


def new_location(table: Table, key: Key, name: str) -> str:
    """Where a data file of a partition with this name (without suffix) belongs."""
    folders = [f"{one.name}={value}" for one, value in zip(table.spec().fields, key, strict=True)]
    return table.location_provider().new_data_location("/".join([*folders, f"{name}.parquet"]))


@dataclass(frozen=True, slots=True)
class _Layout:
    """What all files of one call share."""

    table: Table
    schema: pa.Schema
    plan: dict[int, StatisticsCollector]
    columns: dict[str, int]
    options: Mapping[str, Any]
    group_rows: int

    @classmethod
    def of(cls, table: Table, schema: pa.Schema) -> _Layout:
        given = pyarrow_to_schema(schema, name_mapping=table.schema().name_mapping)
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        # One pass of an empty batch gives column order, field ids and the types of columns that the frame lacks.
        target = _to_requested_schema(
            requested_schema=table.schema(),
            file_schema=given,
            batch=empty,
            include_field_ids=True,
            format_model=ParquetFormatModel(),
        ).schema
        default = TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT
        return cls(
            table=table,
            schema=target,
            plan=compute_statistics_plan(table.schema(), table.properties),
            columns=parquet_path_to_id_mapping(table.schema()),
            options=_get_parquet_writer_kwargs(table.properties),
            group_rows=int(table.properties.get(TableProperties.PARQUET_ROW_GROUP_LIMIT, default)),
        )

    def write(self, file: NewFile) -> DataFile:
        """Write one file. Upkeep may remove an empty folder while it is about to be used, hence the attempts."""
        location = new_location(self.table, file.key, file.name)
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                return self._write(file, location)
            except FileNotFoundError:
                if attempt == WRITE_ATTEMPTS:
                    raise
        raise AssertionError

    def _write(self, file: NewFile, location: str) -> DataFile:
        rows = file.frame.num_rows
        have = set(file.frame.column_names)
        columns = [file.frame.column(one.name) if one.name in have else pa.nulls(rows, one.type) for one in self.schema]
        frame = pa.Table.from_arrays(columns, schema=self.schema)
        with self.table.io.new_output(location).create(overwrite=True) as stream:
            writer = pq.ParquetWriter(stream, self.schema, store_decimal_as_integer=True, **self.options)
            writer.write_table(frame, row_group_size=self.group_rows)
            writer.close()
            size = stream.tell()
        return self.describe(location, file.key, size, writer.writer.metadata)

    def describe(self, path: str, key: Key, size: int, footer: pq.FileMetaData) -> DataFile:
        """The data file of a Parquet file with this footer."""
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer, stats_columns=self.plan, parquet_column_mapping=self.columns
        )
        found = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(*((value - EPOCH).days if isinstance(value, date) else value for value in key)),
            file_size_in_bytes=size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        found.spec_id = self.table.metadata.default_spec_id  # no field of the record, and reading the file needs it
        return found
