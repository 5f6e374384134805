"""Rows of a file that a person hands in, Parquet or JSON lines, as a schema version declares them; strictly judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.errors import ConfigError, DataError, SchemaMismatch
from lakehouse.specs import types
from lakehouse.specs.schema import FieldSpec, SchemaSpec
from lakehouse.tables.columns import fields_of
from lakehouse.tables.fit import Misfit, describe, make_fit
from lakehouse.tables.normalize import to_arrow

PARQUET, LINES = (".parquet",), (".jsonl", ".ndjson")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a file; `unit` is what people call one, and `first` the number that they give to the first."""

    path: Path
    rows: list[Row]
    unit: str
    first: int

    def place(self, number: int) -> str:
        """Where row `number`, from 0, stands: `file, line 3`."""
        return f"{self.path.name}, {self.unit} {number + self.first}"

    def refuse(self, number: int, field: str, expected: str, found: str) -> NoReturn:
        """Raise the error for one wrong value."""
        raise _wrong(self.place(number), field, expected, found)


def read_rows_file(path: Path, spec: SchemaSpec, *, optional: frozenset[str] = frozenset()) -> FileRows:
    """All rows of a file as Python values of their declared types; columns in `optional` may be missing as a whole.

    In JSON lines times and dates are ISO text, binary values hex, decimals numbers or text. Raises ConfigError for a
    file that is neither or cannot be read, DataError that names line or row, field, expected and found.
    """
    if path.suffix not in {*PARQUET, *LINES}:
        raise ConfigError(f"{path} is neither Parquet (.parquet) nor JSON lines (.jsonl, .ndjson); name such a file")
    try:
        return _read_parquet(path, spec, optional) if path.suffix in PARQUET else _read_lines(path, spec, optional)
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({error.strerror or error}); name a file that you may read") from error


def _read_parquet(path: Path, spec: SchemaSpec, optional: frozenset[str]) -> FileRows:
    try:
        frame = pq.ParquetFile(path).read()
    except pa.ArrowException as error:
        raise DataError(f"{path.name} is not a whole Parquet file ({str(error).splitlines()[0]})") from error
    left_out = [name for name in optional if name not in frame.column_names]
    fitting = {field.name: field for field in fields_of(spec)}
    for name in left_out:
        text = ["" if fitting[name].type == "string" else None] * frame.num_rows
        frame = frame.append_column(name, pa.array(text))
    try:
        rows = to_arrow(frame, spec).drop_columns(left_out).to_pylist()
    except SchemaMismatch as error:
        raise DataError(f"{path.name}: {error}; rows count from 0; nothing was changed") from error
    return FileRows(path, rows, "row", 0)


def _read_lines(path: Path, spec: SchemaSpec, optional: frozenset[str]) -> FileRows:
    fields = {field.name: field for field in fields_of(spec)}
    rows = []
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            place = f"{path.name}, line {number}"
            rows.append(_fit_row(_parse_line(line, place), fields, optional, place))
    return FileRows(path, rows, "line", 1)


def _parse_line(line: bytes, place: str) -> Row:
    try:
        value = json.loads(
            line.decode(), parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_unique_keys
        )
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not one JSON object a line ({error}); nothing was changed") from None
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected a JSON object, found {describe(value)}; nothing was changed")
    return value


def _fit_row(row: Row, fields: Mapping[str, FieldSpec], optional: frozenset[str], place: str) -> Row:
    for name in row:
        if name not in fields:
            raise _wrong(place, name, "no such field", "one of that name")
    for name, field in fields.items():
        if name not in row and name not in optional:
            raise _wrong(place, name, field.type, "no such field")
    return {name: _fit_value(row[name], field, place) for name, field in fields.items() if name in row}


def _fit_value(value: Any, field: FieldSpec, place: str) -> Any:
    if value is None:
        if field.required:
            raise _wrong(place, field.name, f"{field.type}, required", "null")
        return None
    tree = types.parse_type(field.type)
    try:
        fitted = make_fit(tree)(_decode(value, tree))
    except Misfit as misfit:
        raise _wrong(place, field.name, misfit.expected, misfit.found) from None
    if field.values is not None and fitted not in field.values:
        raise _wrong(place, field.name, f"one of {list(field.values)}", describe(value))
    return fitted


def _decode(value: Any, tree: types.TypeTree) -> Any:
    """What JSON has no word for, out of what stands for it; anything else as it is, to be judged."""
    match tree:
        case types.Scalar(name):
            decode = _DECODERS.get(name)
            return decode(value) if decode is not None else value
        case types.Decimal():
            return _attempt(Decimal, value) if isinstance(value, str) else value
        case types.ListOf(item) if isinstance(value, list):
            return [None if one is None else _decode(one, item) for one in value]
        case types.MapOf(item) if isinstance(value, dict):
            return {key: None if one is None else _decode(one, item) for key, one in value.items()}
        case types.StructOf(parts) if isinstance(value, dict):
            kinds = dict(parts)
            return {
                key: _decode(one, kinds[key]) if key in kinds and one is not None else one for key, one in value.items()
            }
    return value


def _attempt(make: Callable[[str], Any], value: Any) -> Any:
    """What `make` reads out of a text; the value itself where it cannot."""
    if isinstance(value, str):
        with suppress(ValueError, InvalidOperation):
            return make(value)
    return value


def _as_float(value: Any) -> Any:
    """Decimals, as which numbers are read, as the floats that JSON means, at any depth."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_as_float(one) for one in value]
    return {key: _as_float(one) for key, one in value.items()} if isinstance(value, dict) else value


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "date": lambda value: _attempt(date.fromisoformat, value),
    "timestamp": lambda value: _attempt(datetime.fromisoformat, value),
    "binary": lambda value: _attempt(bytes.fromhex, value),
    "double": _as_float,
    "float": _as_float,
    "json": _as_float,
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> Row:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _wrong(place: str, field: str, expected: str, found: str) -> DataError:
    return DataError(f"{place}: field {field}: expected {expected}, found {found}; correct it, nothing was changed")
