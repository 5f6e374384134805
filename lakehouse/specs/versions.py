"""What the schema versions of one dataset owe each other and other datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lakehouse.errors import Problem
from lakehouse.specs.base import Declared, near_names
from lakehouse.specs.documents import Document
from lakehouse.specs.layout import DeclaredFile
from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.types import Decimal, Scalar, TypeTree, parse_type

SAME_COLUMN = {("int", "long"), ("float", "double"), ("string", "json"), ("json", "string")}
Misplaced = tuple[tuple[str | int, ...], str, str]
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
        problems += [read[file].problem(*item) for item in (*_supersessions(found, spec), *_real_change(found, spec))]
        owner = owners.setdefault(spec.table, file.name)
        if owner != file.name:
            wrong = f"{spec.table} is already the table of dataset {owner!r}"
            problems.append(read[file].problem(("table",), wrong, "give each dataset its own table"))
        found.append(spec)
    return problems


def _differences(old: SchemaSpec, new: SchemaSpec) -> Iterator[Misplaced]:
    for key in ALIKE:
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            yield (key,), f"is {now!s}, but v{old.version} has {was!s}", "all versions of a dataset share one table"
    types = {field.name: parse_type(field.type) for field in old.fields}
    for at, field in enumerate(new.fields):
        was_type = types.get(field.name)
        if was_type is not None and not _is_same_column(was_type, parse_type(field.type)):
            wrong = f"{field.name!r} is {field.type}, but v{old.version} has {was_type}"
            right = "keep the type or widen it, or add a field with another name and `supersedes: " + field.name + "`"
            yield ("fields", at, "type"), wrong, right


def _supersessions(earlier: Sequence[SchemaSpec], new: SchemaSpec) -> Iterator[Misplaced]:
    """A field that supersedes another is new, the other one is not, and no two fields supersede the same."""
    known = {field.name for old in earlier for field in old.fields}
    standing = {field.name: field.supersedes for old in earlier for field in old.fields}
    taken = {old: name for name, old in standing.items() if old is not None}
    for at, field in enumerate(new.fields):
        old, path = field.supersedes, ("fields", at, "supersedes")
        if field.name in standing and standing[field.name] != old:
            was = standing[field.name] or "nothing"
            yield path, f"{field.name!r} superseded {was} before, now {old or 'nothing'}", "what a field means stays"
        elif old is not None and old not in known:
            yield path, f"no earlier version has a field {old!r}", near_names(old, known, "their fields", most=40)
        elif old is not None and taken.setdefault(old, field.name) != field.name:
            yield path, f"{old!r} is superseded by {taken[old]!r} already", "let one field stand for it"


def _real_change(earlier: Sequence[SchemaSpec], new: SchemaSpec) -> Iterator[Misplaced]:
    """A version differs from the one before it in fields, types, nesting or allowed values, not in words alone."""
    if earlier and shape_of(earlier[-1]) == shape_of(new) and not any(_differences(earlier[-1], new)):
        wrong = f"has the fields, types and allowed values of v{earlier[-1].version}"
        yield ("fields",), wrong, "a new version is for changed data: change a field, or remove the file"


def shape_of(spec: SchemaSpec) -> Mapping[str, tuple[str, bool, tuple[object, ...] | None]]:
    """What a version says of its data, without the words: type, required, allowed values, by field."""
    return {field.name: (str(parse_type(field.type)), field.required, field.values) for field in spec.fields}


def _is_same_column(old: TypeTree, new: TypeTree) -> bool:
    """Whether one column can hold both: the same type, or one that the newer widens."""
    if isinstance(old, Scalar) and isinstance(new, Scalar):
        return old == new or (old.name, new.name) in SAME_COLUMN
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new
