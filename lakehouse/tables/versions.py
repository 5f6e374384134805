"""What the schema versions of a table's dataset say of its fields, kept with the table.

So a reader needs the table alone: which version has which field, and which fields stand for which earlier ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.types import TypeTree, parse_type

VERSIONS_PROPERTY = "lakehouse.versions"


@dataclass(frozen=True, slots=True)
class VersionFields:
    """The dataset's own fields in one version: type by name, and the earlier field that a name supersedes."""

    version: int
    types: Mapping[str, str]
    supersedes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A column of the table that holds a field in some versions, with its type there."""

    versions: tuple[int, ...]
    column: str
    tree: TypeTree


@dataclass(frozen=True, slots=True)
class CompatField:
    """One field under its newest name and type; `readings` say where each version keeps it, newest first."""

    name: str
    tree: TypeTree
    readings: tuple[Reading, ...]


def describe_versions(specs: Sequence[SchemaSpec]) -> str:
    """The table property for some versions, ascending."""
    return json.dumps(
        [
            {
                "version": spec.version,
                "fields": {field.name: field.type for field in spec.fields},
                "supersedes": {field.name: field.supersedes for field in spec.fields if field.supersedes},
            }
            for spec in specs
        ],
        ensure_ascii=False,
    )


def read_versions(properties: Mapping[str, str]) -> tuple[VersionFields, ...]:
    """The versions in a table's properties, ascending; none for a table that another program made."""
    found = json.loads(properties.get(VERSIONS_PROPERTY, "[]"))
    return tuple(VersionFields(one["version"], one["fields"], one["supersedes"]) for one in found)


def compat_fields(versions: Sequence[VersionFields]) -> tuple[CompatField, ...]:
    """Every field that no other supersedes, in order of appearance: the dataset under its newest names."""
    older = {name: old for one in versions for name, old in one.supersedes.items()}
    names = dict.fromkeys(name for one in versions for name in one.types)
    return tuple(_field(name, versions, older) for name in names if name not in older.values())


def _field(name: str, versions: Sequence[VersionFields], older: Mapping[str, str]) -> CompatField:
    readings: list[Reading] = []
    left = {one.version for one in versions}
    at: str | None = name
    while at is not None:
        having = [one for one in versions if at in one.types]
        mine = tuple(one.version for one in having if one.version in left)
        if mine:
            readings.append(Reading(mine, at, parse_type(having[-1].types[at])))
        left -= set(mine)
        at = older.get(at)
    return CompatField(name, readings[0].tree, tuple(readings))
