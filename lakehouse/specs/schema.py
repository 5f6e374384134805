"""Registered schemas: `catalog/schemas/<dataset>/v<N>.yaml`."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from lakehouse.model.partition import Layer
from lakehouse.specs.base import CodeName, Declared


class FieldSpec(Declared):
    """One column.

    `type` is `string`, `int`, `long`, `float`, `double`, `boolean`, `date`, `timestamp` (UTC, microseconds), `binary`,
    `decimal(P,S)`, `json` (stored as string), `list<T>`, `map<string,T>` or `struct<name: T, …>`.
    """

    name: CodeName
    type: str
    description: str = Field(min_length=1)
    required: bool = False
    unit: str | None = None
    values: tuple[Any, ...] | None = Field(default=None, description="allowed values, for enumerations")


class SchemaSpec(Declared):
    """One version of a dataset.

    `clean` datasets of records list only their own fields: the frame that every clean record carries (url, template,
    evidence…) is added by the registry (`frame: record`). All others list everything but source, dt, schema_version.
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

    @field_validator("fields")
    @classmethod
    def _names_differ(cls, value: tuple[FieldSpec, ...]) -> tuple[FieldSpec, ...]:
        names = [field.name for field in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"fields are named twice: {twice}")
        return value
