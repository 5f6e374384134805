"""Values of a superseded field as the type of the field that stands for it, in SQL for DuckDB and Trino.

Only what keeps every digit: a text that is no whole number of the right size becomes null, never something near.
"""

from __future__ import annotations

from lakehouse.specs.types import Decimal, Scalar, TypeTree

_SQL = {
    "string": "VARCHAR",
    "json": "VARCHAR",
    "int": "INTEGER",
    "long": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
}
_DIGITS = {"int": 10, "long": 19}
_EXACT = {
    ("int", "long"),
    ("int", "double"),
    ("float", "double"),
    *((kind, text) for kind in ("int", "long", "boolean", "date") for text in ("string", "json")),
}
_WRITTEN = {
    "int": r"^(0|-?[1-9][0-9]{0,9})$",
    "long": r"^(0|-?[1-9][0-9]{0,18})$",
    "boolean": r"^(true|false)$",
    "date": r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$",
}


def cast_sql(column: str, old: TypeTree, new: TypeTree) -> str | None:
    """An expression for `column` (quoted) of type `old` as `new`; None where the types allow no lossless cast.

    It uses `regexp_like` and `TRY_CAST`.
    """
    if old == new or (_is_text(old) and _is_text(new)):
        return column
    if _is_text(old):
        pattern = _written(new)
        return pattern and f"CASE WHEN regexp_like({column}, '{pattern}') THEN TRY_CAST({column} AS {_name(new)}) END"
    return f"CAST({column} AS {_name(new)})" if _is_exact(old, new) else None


def _is_text(tree: TypeTree) -> bool:
    return isinstance(tree, Scalar) and tree.name in {"string", "json"}


def _is_exact(old: TypeTree, new: TypeTree) -> bool:
    match old, new:
        case Scalar(was), Scalar(now):
            return (was, now) in _EXACT
        case Scalar(was), Decimal(digits, scale):
            return was in _DIGITS and digits - scale >= _DIGITS[was]
        case Decimal(was_digits, was_scale), Decimal(digits, scale):
            return scale >= was_scale and digits - scale >= was_digits - was_scale
        case Decimal(), Scalar(now):
            return now in {"string", "json"}
    return False


def _written(tree: TypeTree) -> str | None:
    """How a text is written that is exactly a value of the type."""
    match tree:
        case Scalar(name):
            return _WRITTEN.get(name)
        case Decimal(digits, scale) if digits == scale:
            return rf"^-?0(\.[0-9]{{1,{scale}}})?$"
        case Decimal(digits, scale):
            fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
            return rf"^-?(0|[1-9][0-9]{{0,{digits - scale - 1}}}){fraction}$"
    return None


def _name(tree: TypeTree) -> str:
    if isinstance(tree, Decimal):
        return f"DECIMAL({tree.precision},{tree.scale})"
    return _SQL[str(tree)]
