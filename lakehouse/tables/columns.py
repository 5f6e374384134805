"""The columns of a dataset version and of a table, and their Arrow types: what every other table module starts from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from lakehouse.errors import CatalogError, Problem
from lakehouse.model.partition import Layer
from lakehouse.specs.schema import FieldSpec, SchemaSpec
from lakehouse.specs.types import Decimal, ListOf, MapOf, Scalar, StructOf, TypeTree, parse_type

PARTITION_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "source_dt_version": ("source", "dt", "schema_version"),
    "source": ("source",),
    "none": (),
}
_LEAD = (
    FieldSpec(name="source", type="string", required=True, description="code name of the source"),
    FieldSpec(name="dt", type="date", required=True, description="business date in the business time zone"),
    FieldSpec(name="schema_version", type="int", required=True, description="schema version the row was written under"),
)
_FRAME_BEFORE = (
    FieldSpec(name="url", type="string", required=True, description="URL of the page the record comes from"),
    FieldSpec(
        name="url_fp", type="string", required=True, description="fingerprint of the URL's syntactic normal form"
    ),
    FieldSpec(name="canonical_fp", type="string", required=True, description="fingerprint of the URL under the rules"),
    FieldSpec(name="url_rules_version", type="int", required=True, description="version of the URL rules"),
    FieldSpec(name="content_hash", type="string", required=True, description="hash of the record's own values"),
)
_FRAME_AFTER = (
    FieldSpec(name="tags", type="list<string>", description="tags given by rules or by the source"),
    FieldSpec(name="flags", type="list<string>", description="quality checks that flagged the row"),
    FieldSpec(name="fetch_id", type="string", required=True, description="fetch the record was parsed from"),
    FieldSpec(name="task_id", type="string", required=True, description="task that led to the fetch"),
    FieldSpec(name="template", type="string", required=True, description="name of the parse rules"),
    FieldSpec(name="template_version", type="int", required=True, description="version of the parse rules"),
    FieldSpec(name="collect_time", type="timestamp", required=True, description="when the page was fetched"),
    FieldSpec(name="snap_key", type="string", description="key of the stored page"),
)
_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "json": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
}
_WIDER = {("int", "long"), ("float", "double"), ("string", "json"), ("json", "string")}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, over all versions of its dataset."""

    name: str
    tree: TypeTree
    required: bool
    doc: str


def schema_file(spec: SchemaSpec) -> str:
    """Where a version is declared, below the project's folder."""
    return f"catalog/schemas/{spec.dataset}/v{spec.version}.yaml"


@lru_cache(maxsize=512)
def fields_of(spec: SchemaSpec) -> tuple[FieldSpec, ...]:
    """All columns of one version, with those that the registry adds, in order."""
    lead = () if spec.layer is Layer.META else _LEAD
    if spec.frame == "record":
        return (*lead, *_FRAME_BEFORE, *spec.fields, *_FRAME_AFTER)
    return (*lead, *spec.fields)


@lru_cache(maxsize=512)
def arrow_schema(spec: SchemaSpec) -> pa.Schema:
    """The Arrow schema of one version, with the columns that the registry adds, in the table's order."""
    return pa.schema(
        [pa.field(f.name, arrow_type(parse_type(f.type)), nullable=not f.required) for f in fields_of(spec)]
    )


def arrow_type(tree: TypeTree) -> pa.DataType:
    """The one Arrow type of a declared type; timestamps are UTC microseconds, parts may be null."""
    match tree:
        case Scalar(name):
            return _ARROW[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case ListOf(item):
            return pa.list_(pa.field("element", arrow_type(item)))
        case MapOf(value):
            return pa.map_(pa.string(), pa.field("value", arrow_type(value)))
        case StructOf(fields):
            return pa.struct([pa.field(name, arrow_type(part)) for name, part in fields])


@lru_cache(maxsize=256)
def union_columns(specs: tuple[SchemaSpec, ...]) -> tuple[Column, ...]:
    """Columns over all versions: new ones come last, required only where every version requires them.

    Raises CatalogError if two versions give a column types that one table cannot hold.
    """
    columns: dict[str, Column] = {}
    for spec in specs:
        given = {f.name: f for f in fields_of(spec)}
        for name, field in given.items():
            tree = parse_type(field.type)
            known = columns.get(name)
            required = field.required and (spec is specs[0] if known is None else known.required)
            doc = field.description if field.unit is None else f"{field.description} ({field.unit})"
            columns[name] = Column(name, _widest(known, tree, spec), required, doc)
        for name in columns.keys() - given.keys():
            columns[name] = replace(columns[name], required=False)
    return tuple(columns.values())


def _widest(known: Column | None, tree: TypeTree, spec: SchemaSpec) -> TypeTree:
    if known is None or known.tree == tree:
        return tree
    match known.tree, tree:
        case Scalar(old), Scalar(new) if (old, new) in _WIDER:
            return tree
        case Scalar(old), Scalar(new) if (new, old) in _WIDER:
            return known.tree
        case Decimal(old_digits, old_scale), Decimal(digits, scale) if old_scale == scale:
            return Decimal(max(old_digits, digits), scale)
    raise CatalogError(
        [
            Problem(
                schema_file(spec),
                f"fields.{known.name}.type",
                f"is {tree}, an earlier version has {known.tree}, and one table column cannot hold both",
                f"keep {known.tree} or give the field a new name",
            )
        ]
    )


@lru_cache(maxsize=512)
def spec_hash(spec: SchemaSpec) -> str:
    """Content hash of a version (hex sha256): what is declared, whatever the file's spelling or comments."""
    declared = spec.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(declared, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sort_keys(spec: SchemaSpec) -> list[tuple[str, str]]:
    """(column, `ascending` or `descending`) in sort order."""
    return [(key.removeprefix("-"), "descending" if key.startswith("-") else "ascending") for key in spec.sort]
