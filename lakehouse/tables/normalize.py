"""Rows and frames to Arrow, exactly as a schema version declares them: nothing is dropped or coerced in silence.

A column that Arrow can cast without loss is cast as a whole; any other is judged value by value (`fit`), which also
finds the value that a message names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.errors import SchemaMismatch
from lakehouse.specs.schema import FieldSpec, SchemaSpec
from lakehouse.specs.types import Scalar, TypeTree, parse_type
from lakehouse.tables.columns import arrow_schema, arrow_type, fields_of, schema_file, union_columns
from lakehouse.tables.fit import Misfit, describe, make_fit

CASTS: Mapping[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "string": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "binary": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
    "int": (pa.types.is_integer,),
    "long": (pa.types.is_integer,),
    "double": (pa.types.is_floating, pa.types.is_integer),
    "float": (pa.types.is_float32,),
    "boolean": (pa.types.is_boolean,),
    "date": (pa.types.is_date,),
    "timestamp": (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,),
}


def to_arrow(rows: Iterable[Mapping[str, Any]] | pl.DataFrame | pa.Table, spec: SchemaSpec) -> pa.Table:
    """A frame with exactly the columns of `spec` (see `columns.arrow_schema`), in its order.

    Timestamps become UTC microseconds, decimals stay exact, `json` takes text or plain values. Raises SchemaMismatch
    that names field, expected, found and file for: extra or missing columns, null in a required column, naive times,
    NaN or infinity, a number that does not fit, NUL or a lone surrogate in text, a value outside `values`.
    """
    fields = fields_of(spec)
    if isinstance(rows, pl.DataFrame):
        rows = _polars_to_arrow(rows, spec)
    if isinstance(rows, pa.Table):
        _check_names(rows.column_names, spec)
        columns = [_fit_column(rows.column(field.name), field, spec) for field in fields]
    else:
        listed = list(rows)
        for number, row in enumerate(listed):
            if len(row) != len(fields) or any(field.name not in row for field in fields):
                _check_names(list(row), spec, number)
        columns = [_fit_values([row[field.name] for row in listed], field, spec) for field in fields]
    frame = pa.table(columns, schema=arrow_schema(spec))
    if spec.frame == "record":
        _check_version(frame, spec)
    return frame


def mismatch(spec: SchemaSpec, field: str, expected: str, found: str, row: int | None = None) -> SchemaMismatch:
    """The error for a frame that does not fit `spec`."""
    where = "" if row is None else f" (row {row})"
    return SchemaMismatch(
        f"{spec.table} does not take this frame as {spec.dataset}@{spec.version}: field {field}{where}: "
        f"expected {expected}, found {found}; correct the data, or declare a new version beside {schema_file(spec)}"
    )


def _polars_to_arrow(frame: pl.DataFrame, spec: SchemaSpec) -> pa.Table:
    for name, kind in frame.schema.items():
        if kind == pl.Object:
            raise mismatch(spec, name, "a column with one type", "Python objects")
    return frame.to_arrow()


def _check_names(names: Sequence[str], spec: SchemaSpec, row: int | None = None) -> None:
    fields = {field.name: field for field in fields_of(spec)}
    for name, field in fields.items():
        if name not in names:
            raise mismatch(spec, name, field.type, "no such column", row)
    for name in names:
        if name not in fields:
            raise mismatch(spec, str(name), "no such column", "a column of that name", row)
        if list(names).count(name) > 1:
            raise mismatch(spec, name, "one column", "the column twice", row)


def _check_version(frame: pa.Table, spec: SchemaSpec) -> None:
    for found in pc.unique(frame.column("schema_version")).to_pylist():
        if found != spec.version:
            raise mismatch(spec, "schema_version", str(spec.version), str(found))


def _fit_values(values: list[Any], field: FieldSpec, spec: SchemaSpec) -> pa.Array:
    tree = parse_type(field.type)
    fit = make_fit(tree)
    fitted: list[Any] = []
    for number, value in enumerate(values):
        if value is None:
            if field.required:
                raise mismatch(spec, field.name, f"{field.type}, required", "null", number)
            fitted.append(None)
            continue
        try:
            fitted.append(fit(value))
        except Misfit as misfit:
            raise mismatch(spec, field.name, misfit.expected, misfit.found, number) from None
        if field.values is not None and not _is_allowed(fitted[-1], field.values):
            raise mismatch(spec, field.name, f"one of {list(field.values)}", describe(value), number)
    return pa.array(fitted, arrow_type(tree))


def _is_allowed(value: Any, allowed: tuple[Any, ...]) -> bool:
    if isinstance(value, list):
        return all(item is None or item in allowed for item in value)
    return value in allowed


def _fit_column(column: pa.ChunkedArray, field: FieldSpec, spec: SchemaSpec) -> pa.ChunkedArray | pa.Array:
    tree = parse_type(field.type)
    quick = None if field.required and column.null_count else _cast_column(column, tree)
    if quick is not None and field.values is not None:
        unique = pc.unique(quick).to_pylist()
        quick = quick if all(value is None or value in field.values for value in unique) else None
    if quick is not None:
        return quick
    try:
        values = column.to_pylist()
    except (UnicodeDecodeError, ValueError, OverflowError) as error:
        raise mismatch(spec, field.name, field.type, f"{column.type} that cannot be read ({error})") from None
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(arrow_type(tree)) and column.type.unit == "ns":
        found = f"{column.type} with parts of a microsecond" if column.type.tz else f"naive {column.type}"
        raise mismatch(spec, field.name, "timestamp (UTC, microseconds)", found)
    return _fit_values(values, field, spec)


def _cast_column(column: pa.ChunkedArray, tree: TypeTree) -> pa.ChunkedArray | None:
    """The column in its declared type where Arrow loses nothing, else None: then each value is judged."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _cast_column(column.cast(kind.value_type), tree)
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column), arrow_type(tree))])
    if not isinstance(tree, Scalar) or not any(casts(kind) for casts in CASTS.get(tree.name, ())):
        return None
    try:
        column.validate(full=True)
        cast = column.cast(arrow_type(tree), safe=True)
    except pa.ArrowInvalid:
        return None
    return None if _holds_nonsense(cast) else cast


def _holds_nonsense(column: pa.ChunkedArray) -> bool:
    """Whether text holds NUL, or numbers are not finite."""
    if pa.types.is_string(column.type):
        return pc.any(pc.match_substring(column, "\0")).as_py() is True
    return pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False


def check_frame(frame: pa.Table, specs: tuple[SchemaSpec, ...]) -> pa.Table:
    """The frame as its table takes it: columns of any version, narrower numbers widened; raises SchemaMismatch."""
    newest = specs[-1]
    declared = {column.name: column for column in union_columns(specs)}
    for column in declared.values():
        if column.required and column.name not in frame.column_names:
            raise mismatch(newest, column.name, f"{column.tree}, required", "no such column")
    columns = []
    for name in frame.column_names:
        if name not in declared or frame.column_names.count(name) > 1:
            raise mismatch(newest, name, "no such column" if name not in declared else "one column", "a column")
        values, wanted = frame.column(name), arrow_type(declared[name].tree)
        if values.type != wanted:
            if not _widens(values.type, wanted):
                raise mismatch(newest, name, str(declared[name].tree), str(values.type))
            values = values.cast(wanted)
        if declared[name].required and values.null_count:
            raise mismatch(newest, name, f"{declared[name].tree}, required", "null")
        columns.append(values)
    return pa.table(columns, names=frame.column_names)


def _widens(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_decimal128(kind) and pa.types.is_decimal128(wanted):
        return bool(kind.scale == wanted.scale and kind.precision <= wanted.precision)
    return (kind, wanted) in {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}
