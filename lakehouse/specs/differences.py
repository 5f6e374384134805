"""What one schema version changes against another, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse.specs.schema import FieldSpec, SchemaSpec
from lakehouse.specs.types import parse_type


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: `what` is added, dropped, replaced, type, required, values, unit or description."""

    what: str
    field: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        match self.what:
            case "added":
                return f"{self.field} added ({self.new})"
            case "dropped":
                return f"{self.field} dropped ({self.old})"
            case "replaced":
                return f"{self.field} ({self.new}) stands for {self.old}"
        return f"{self.field}: {self.what} {self.old or 'none'} -> {self.new or 'none'}"


def compare_versions(old: SchemaSpec, new: SchemaSpec) -> list[FieldChange]:
    """All changes from one version to another, in the order of the new one's fields, dropped ones last."""
    before = {field.name: field for field in old.fields}
    changes = [change for field in new.fields for change in _changes(before, field)]
    kept = {field.name for field in new.fields} | {change.old for change in changes if change.what == "replaced"}
    gone = [field for field in old.fields if field.name not in kept]
    return changes + [FieldChange("dropped", field.name, _type(field), None) for field in gone]


def _changes(before: dict[str, FieldSpec], field: FieldSpec) -> Iterator[FieldChange]:
    was = before.get(field.name)
    if was is None:
        replaced = field.supersedes if field.supersedes in before else None
        yield FieldChange("replaced" if replaced else "added", field.name, replaced, _type(field))
        return
    pairs = {
        "type": (_type(was), _type(field)),
        "required": (_yes(was.required), _yes(field.required)),
        "values": (_values(was), _values(field)),
        "unit": (was.unit, field.unit),
        "description": (was.description, field.description),
    }
    for what, (old, new) in pairs.items():
        if old != new:
            yield FieldChange(what, field.name, old, new)


def _type(field: FieldSpec) -> str:
    return str(parse_type(field.type))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _values(field: FieldSpec) -> str | None:
    return None if field.values is None else ", ".join(map(str, field.values))
