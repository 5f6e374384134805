"""Registered schemas: `catalog/schemas/<dataset>/v<N>.yaml`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from lakehouse.model.partition import Layer
from lakehouse.specs.base import CodeName, Declared, Misfit, near_names
from lakehouse.specs.types import ListOf, MapOf, Scalar, StructOf, TypeProblem, parse_type

LEAD = ("source", "dt", "schema_version")
FRAME = (
    *("url", "url_fp", "canonical_fp", "url_rules_version", "content_hash", "tags", "flags", "fetch_id", "task_id"),
    *("template", "template_version", "collect_time", "snap_key"),
)
ENUMERABLE = {"string": str, "int": int, "long": int}
LARGEST = {"int": 2**31, "long": 2**63}


def _is_of(value: Any, name: str) -> bool:
    """Whether an allowed value is of the scalar type `name`; true is no number here."""
    if type(value) is not ENUMERABLE[name]:
        return False
    number: Any = value
    return name not in LARGEST or bool(-LARGEST[name] <= number < LARGEST[name])


class FieldSpec(Declared):
    """One column.

    `type` is `string`, `int`, `long`, `float`, `double`, `boolean`, `date`, `timestamp` (UTC, microseconds), `binary`,
    `decimal(P,S)`, `json` (stored as string), `list<T>`, `map<string,T>` or `struct<name: T, …>`: see `specs.types`.
    `supersedes` names the field of an earlier version that this one stands for, renamed or with another type.
    """

    name: CodeName
    type: str
    description: str = Field(min_length=1)
    required: bool = False
    unit: str | None = None
    values: tuple[Any, ...] | None = Field(default=None, description="allowed values, for enumerations")
    supersedes: CodeName | None = None

    @field_validator("type")
    @classmethod
    def _type_is_known(cls, value: str) -> str:
        try:
            parse_type(value)
        except TypeProblem as problem:
            raise Misfit(problem.wrong, problem.right) from None
        return value

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        if self.values is None:
            return self
        tree = parse_type(self.type)
        name = tree.name if isinstance(tree, Scalar) else ""
        if name not in ENUMERABLE:
            raise Misfit(f"a {self.type} cannot be an enumeration", "remove `values`: string, int and long have them")
        for at, value in enumerate(self.values):
            if not _is_of(value, name):
                raise Misfit(
                    f"{value!r} is no {name}", f"allowed values are of the field's type {name}", ("values", at)
                )
        if not self.values or len(set(self.values)) < len(self.values):
            raise Misfit("allowed values are empty or repeat themselves", "list each value once", ("values",))
        return self


class SchemaSpec(Declared):
    """One version of a dataset.

    `clean` datasets of records list only their own fields: the frame that every clean record carries (url, template,
    evidence…) is added by the registry (`frame: record`). All others list everything but source, dt, schema_version,
    and `meta` tables list these too.
    """

    dataset: CodeName
    version: int = Field(gt=0)
    layer: Layer
    table: str = Field(pattern=r"^(raw|clean|feature|meta)\.[a-z][a-z0-9_]{0,63}$")
    description: str = Field(min_length=1)
    changes: str = Field(min_length=1, description="what this version changes and why")
    reviewed_by: str = Field(min_length=1)
    frame: str = Field(default="none", pattern="^(none|record)$")
    partitioned: str = Field(default="source_dt_version", pattern="^(source_dt_version|source|none)$")
    sort: tuple[str, ...] = Field(default=(), description="columns rows are sorted by; a leading - means descending")
    fields: tuple[FieldSpec, ...] = Field(min_length=1)

    @property
    def given_columns(self) -> tuple[str, ...]:
        """Names of the columns that the table has without the schema listing them."""
        lead = () if self.layer is Layer.META else LEAD
        return (*lead, *FRAME) if self.frame == "record" else lead

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, in no particular order."""
        return (*self.given_columns, *(field.name for field in self.fields))

    @field_validator("fields")
    @classmethod
    def _names_differ(cls, value: tuple[FieldSpec, ...]) -> tuple[FieldSpec, ...]:
        first: dict[str, int] = {}
        for at, field in enumerate(value):
            if field.name in first:
                raise Misfit(
                    f"{field.name!r} is already the name of fields[{first[field.name]}]", "name each once", (at, "name")
                )
            first[field.name] = at
        return value

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if not self.table.startswith(f"{self.layer}."):
            raise Misfit(f"{self.table!r} is not in layer {self.layer}", f"write {self.layer}.name", ("table",))
        for at, field in enumerate(self.fields):
            if field.name in self.given_columns:
                hint = "remove the field; every such table has this column"
                raise Misfit(f"{field.name!r} is added by itself", hint, ("fields", at, "name"))
        unordered = {"tags", "flags"} - {field.name for field in self.fields}
        unordered |= {
            field.name for field in self.fields if isinstance(parse_type(field.type), ListOf | MapOf | StructOf)
        }
        for at, column in enumerate(self.sort):
            if column.removeprefix("-") not in self.columns:
                hint = near_names(column.removeprefix("-"), self.columns, "columns", most=40)
                raise Misfit(f"{column!r} is not a column of this table", hint, ("sort", at))
            if column.removeprefix("-") in unordered:
                raise Misfit(f"{column!r} has no order", "sort by columns that hold one value a row", ("sort", at))
        return self
