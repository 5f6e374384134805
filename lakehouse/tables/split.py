"""A frame into one slice a partition: sorted once, then sliced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.errors import SchemaMismatch
from lakehouse.model.partition import Partition
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.columns import PARTITION_COLUMNS, sort_keys
from lakehouse.tables.content import MODULUS, row_digests
from lakehouse.tables.normalize import mismatch

CODE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
FILE_BYTES = 256 << 20
WIDE_BYTES = 1 << 30
EPOCH = date(1970, 1, 1)

Key = tuple[Any, ...]
"""The values of a table's partition columns, in their order: (source, dt, schema_version), (source,) or ()."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of one partition, sorted; `checksum` is their content hash as a number."""

    key: Key
    frame: pa.Table
    checksum: int


def key_of(partition: Partition, spec: SchemaSpec) -> Key:
    """The part of a partition's values that its table is partitioned by."""
    return tuple(getattr(partition, name) for name in PARTITION_COLUMNS[spec.partitioned])


def partition_of(key: Key) -> Partition:
    """The partition of a key; what the table is not partitioned by is empty, the first day, or version 0."""
    source, dt, version = key + ("", date.min, 0)[len(key) :]
    return Partition(source, dt, version)


def split_frame(frame: pa.Table, spec: SchemaSpec) -> list[Slice]:
    """One slice a partition that has rows, in key order; rows within are in the order that `spec` declares."""
    if frame.num_rows == 0:
        return []
    names = PARTITION_COLUMNS[spec.partitioned]
    order = [(name, "ascending") for name in names]
    order += [key for key in sort_keys(spec) if key[0] in frame.column_names]  # older versions may lack a column
    ordered = _with_room(frame).sort_by(order).combine_chunks() if order else frame
    sums = [int.from_bytes(digest) for digest in row_digests(ordered)]
    slices = []
    for key, start, end in _runs(ordered, names):
        _check_source(key, spec)
        slices.append(Slice(key, ordered.slice(start, end - start), sum(sums[start:end]) % MODULUS))
    return slices


def file_frames(part: Slice) -> list[pa.Table]:
    """The slice cut so that no data file grows out of bounds."""
    rows = part.frame.num_rows
    step = max(1, rows * FILE_BYTES // max(FILE_BYTES, part.frame.nbytes))
    return [part.frame.slice(start, step) for start in range(0, rows, step)]


def _with_room(frame: pa.Table) -> pa.Table:
    """Sorting puts a column into one array, and one with 32-bit offsets ends at 2 GiB."""
    if frame.nbytes < WIDE_BYTES:
        return frame
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return frame.cast(pa.schema([one.with_type(wide.get(one.type, one.type)) for one in frame.schema]))


def _runs(ordered: pa.Table, names: Sequence[str]) -> list[tuple[Key, int, int]]:
    """Key, start and end of each run of equal keys. Arrow's `group_by` would do, but keeps no order of its groups."""
    if not names:
        return [((), 0, ordered.num_rows)]
    rows = ordered.num_rows
    columns = [ordered.column(name) for name in names]
    changes = [pc.not_equal(column.slice(1), column.slice(0, rows - 1)) for column in columns]
    starts = [0, *(start + 1 for start in pc.indices_nonzero(reduce(pc.or_, changes)).to_pylist())]
    keys = zip(*(column.take(starts).to_pylist() for column in columns), strict=True)
    return list(zip(keys, starts, [*starts[1:], rows], strict=True))


def _check_source(key: Key, spec: SchemaSpec) -> None:
    if key and not CODE_NAME.fullmatch(key[0]):
        problem: SchemaMismatch = mismatch(spec, "source", "a code name such as city_news", ascii(key[0]))
        raise problem
