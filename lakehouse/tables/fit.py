"""Whether one Python value fits a declared type: the judge behind `normalize`, and the source of its messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, NoReturn

from lakehouse.specs import types

EXACT = Context(prec=100)
FLOAT32_MAX = 3.4028234663852886e38
INT_BITS = {"int": 31, "long": 63}
EXPECTED = {
    "timestamp": "timestamp (an aware time)",
    "json": "json (JSON text, or plain values)",
    "string": "string (without NUL and lone surrogates)",
    "double": "double (finite)",
    "float": "float (finite)",
}


class Misfit(Exception):
    """A value that does not fit: `expected` and `found` are for people."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"expected {expected}, found {found}")


Fit = Callable[[Any], Any]


@lru_cache(maxsize=1024)
def make_fit(tree: types.TypeTree) -> Fit:
    """A function that takes a value, never None, and gives what Arrow is to store; it raises Misfit."""
    match tree:
        case types.Scalar(name):
            return _SCALARS[name]
        case types.Decimal(precision, scale):
            return lambda value: _fit_decimal(value, precision, scale)
        case types.ListOf(item):
            fit_item = make_fit(item)
            return lambda value: _fit_list(value, fit_item, tree)
        case types.MapOf(item):
            fit_value = make_fit(item)
            return lambda value: _fit_map(value, fit_value, tree)
        case types.StructOf(fields):
            parts = {name: make_fit(part) for name, part in fields}
            return lambda value: _fit_struct(value, parts, tree)


def describe(value: Any) -> str:
    """A value for a message: its type and the beginning of what it holds."""
    try:
        text = ascii(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        text = f"of {value.bit_length()} bits"
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def _misfit(expected: str, value: Any, why: str = "") -> NoReturn:
    raise Misfit(EXPECTED.get(expected, expected), f"{why} {describe(value)}".strip())


def _fit_string(value: Any) -> str:
    if not isinstance(value, str):
        _misfit("string", value)
    if "\0" in value:
        _misfit("string", value, "NUL in")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            _misfit("string", value, "a lone surrogate in")
    return value if type(value) is str else str.__str__(value)


def _fit_whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        _misfit(name, value)
    bound = 1 << INT_BITS[name]
    if not -bound <= value < bound:
        _misfit(name, value, "out of range:")
    return int(value)


def _fit_float(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _misfit(name, value)
    if isinstance(value, int) and not _is_exact(value):
        _misfit(name, value, "not exact as a float:")
    if not math.isfinite(value):
        _misfit(name, value, "" if math.isinf(value) else "not None but")
    if name == "float" and abs(value) > FLOAT32_MAX:
        _misfit(name, value, "out of range:")
    return float(value)


def _is_exact(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _fit_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        _misfit("boolean", value)
    return value


def _fit_date(value: Any) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        _misfit("date", value)
    return value


def _fit_timestamp(value: Any) -> datetime:
    if not isinstance(value, datetime):
        _misfit("timestamp", value)
    if value.utcoffset() is None:
        _misfit("timestamp", value, "a naive time:")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        _misfit("timestamp", value, "out of range:")


def _fit_binary(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        _misfit("binary", value)
    return bytes(value)


def _fit_decimal(value: Any, precision: int, scale: int) -> Decimal:
    expected = f"decimal({precision},{scale})"
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        _misfit(expected, value)
    number = Decimal(value)
    if not number.is_finite() or abs(number) >= Decimal(10) ** (precision - scale):
        _misfit(expected, value, "out of range:")
    exact = number.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    if exact != number:
        _misfit(expected, value, "too precise:")
    return exact


def _fit_json(value: Any) -> str:
    if isinstance(value, str):
        try:
            json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            _misfit("json", value, "text that is not JSON:")
        return _fit_string(value)
    try:
        text = json.dumps(
            value, default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise Misfit(EXPECTED["json"], f"{describe(value)} ({error})") from None
    return _fit_string(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _plain(value: Any) -> Any:
    """What JSON has no word for: mappings, times and dates as ISO text, decimals as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _fit_list(value: Any, fit_item: Fit, tree: types.TypeTree) -> list[Any]:
    if not isinstance(value, list | tuple):
        _misfit(str(tree), value)
    return [None if item is None else fit_item(item) for item in value]


def _fit_map(value: Any, fit_value: Fit, tree: types.TypeTree) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        pairs = list(value)
    elif isinstance(value, list) and all(isinstance(pair, dict) and pair.keys() == {"key", "value"} for pair in value):
        pairs = [(pair["key"], pair["value"]) for pair in value]
    else:
        _misfit(str(tree), value)
    fitted = [(_fit_string(key), None if item is None else fit_value(item)) for key, item in pairs]
    if len({key for key, _ in fitted}) != len(fitted):
        _misfit(str(tree), value, "a key twice in")
    return fitted


def _fit_struct(value: Any, parts: Mapping[str, Fit], tree: types.TypeTree) -> dict[str, Any]:
    if not isinstance(value, Mapping) or value.keys() != parts.keys():
        _misfit(str(tree), value)
    return {name: None if value[name] is None else fit(value[name]) for name, fit in parts.items()}


_SCALARS: Mapping[str, Fit] = {
    "string": _fit_string,
    "json": _fit_json,
    "int": lambda value: _fit_whole(value, "int"),
    "long": lambda value: _fit_whole(value, "long"),
    "float": lambda value: _fit_float(value, "float"),
    "double": lambda value: _fit_float(value, "double"),
    "boolean": _fit_boolean,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
    "binary": _fit_binary,
}
