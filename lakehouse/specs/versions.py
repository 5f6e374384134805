"""What the schema versions of one dataset owe each other and other datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakehouse.errors import Problem
from lakehouse.specs.base import Declared
from lakehouse.specs.documents import Document
from lakehouse.specs.layout import DeclaredFile
from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.types import Decimal, Scalar, TypeTree, parse_type

SAME_COLUMN = {("int", "long"), ("float", "double"), ("string", "json"), ("json", "string")}
ALIKE = ("table", "layer", "frame", "partitioned")


def judge_versions(read: Mapping[DeclaredFile, Document], specs: Mapping[DeclaredFile, Declared]) -> list[Problem]:
    """Problems between versions of one dataset, and of datasets that claim one table."""
    problems: list[Problem] = []
    earlier: dict[str, list[SchemaSpec]] = {}
    owners: dict[str, str] = {}
    for file, spec in specs.items():
        if not isinstance(spec, SchemaSpec):
            continue
        found = earlier.setdefault(file.name, [])
        problems += [read[file].problem(*item) for old in found for item in _differences(old, spec)]
        owner = owners.setdefault(spec.table, file.name)
        if owner != file.name:
            wrong = f"{spec.table} is already the table of dataset {owner!r}"
            problems.append(read[file].problem(("table",), wrong, "give each dataset its own table"))
        found.append(spec)
    return problems


def _differences(old: SchemaSpec, new: SchemaSpec) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    for key in ALIKE:
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            yield (key,), f"is {now!s}, but v{old.version} has {was!s}", "all versions of a dataset share one table"
    types = {field.name: parse_type(field.type) for field in old.fields}
    for at, field in enumerate(new.fields):
        was_type = types.get(field.name)
        if was_type is not None and not _is_same_column(was_type, parse_type(field.type)):
            wrong = f"{field.name!r} is {field.type}, but v{old.version} has {was_type}"
            right = "all versions share the column: keep its type or widen it, or give the field another name"
            yield ("fields", at, "type"), wrong, right


def _is_same_column(old: TypeTree, new: TypeTree) -> bool:
    """Whether one column can hold both: the same type, or one that the newer widens."""
    if isinstance(old, Scalar) and isinstance(new, Scalar):
        return old == new or (old.name, new.name) in SAME_COLUMN
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new
