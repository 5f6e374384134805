"""What engines return, brought to one Arrow schema, so that the same rows give the same content hash.

A value that does not fit is an error, never a silent change: a comparison must not hide differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt


def to_plain(schema: pa.Schema) -> pa.Schema:
    """The schema with 32-bit offsets and no field metadata, to which every engine's batches are cast."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def from_batch(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """Arrow data of an engine as `schema` (see `to_plain`), matched by column name."""
    frame = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    return frame.select(schema.names).cast(schema)


def from_rows(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows of Python values, in the order of `schema`, as a frame: maps as dicts, structs as tuples or dicts."""
    columns = []
    for index, field in enumerate(schema):
        convert = _converter(field.type)
        columns.append(pa.array([convert(row[index]) for row in rows], type=field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pt.is_large_string(kind):
        return pa.string()
    if pt.is_large_binary(kind):
        return pa.binary()
    if pt.is_list(kind) or pt.is_large_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pt.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    return kind


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """A function from an engine's Python value to what `pa.array` takes for `kind`."""
    if pt.is_list(kind):
        inner = _converter(kind.value_type)
        return lambda value: None if value is None else [inner(item) for item in value]
    if pt.is_map(kind):
        key, item = _converter(kind.key_type), _converter(kind.item_type)
        return lambda value: None if value is None else [(key(k), item(v)) for k, v in value.items()]
    if pt.is_struct(kind):
        return _struct_converter(kind)
    return lambda value: value


def _struct_converter(kind: pa.StructType) -> Callable[[Any], Any]:
    inner = {field.name: _converter(field.type) for field in kind}

    def convert(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        values = value if isinstance(value, Mapping) else dict(zip(inner, value, strict=True))
        return {name: function(values[name]) for name, function in inner.items()}

    return convert
