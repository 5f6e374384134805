"""Registered schemas as Iceberg and Arrow schemas, and the tables made from them.

A table holds the union of its dataset's versions. A version that was once registered never changes: its content hash
stands in the table's properties. A field keeps its Iceberg id for ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)
from sqlalchemy.exc import IntegrityError

from lakehouse.errors import CatalogError, Problem
from lakehouse.specs.schema import SchemaSpec
from lakehouse.specs.types import Decimal, ListOf, MapOf, Scalar, StructOf, TypeTree
from lakehouse.tables.columns import PARTITION_COLUMNS, arrow_schema, schema_file, sort_keys, spec_hash, union_columns
from lakehouse.tables.versions import VERSIONS_PROPERTY, describe_versions

if TYPE_CHECKING:
    from lakehouse.specs.loader import Catalog

__all__ = ["arrow_schema", "ensure_table", "iceberg_schema"]
SCHEMA_PROPERTY = "lakehouse.schema."
TABLE_PROPERTIES = {
    "format-version": "2",
    "gc.enabled": "false",
    "commit.manifest.target-size-bytes": "524288",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "10",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "write.delete.isolation-level": "snapshot",
    "write.update.isolation-level": "snapshot",
    "write.merge.isolation-level": "snapshot",
    "write.parquet.compression-codec": "zstd",
    # Bounds of every column would make manifests, which each replace rewrites, three times as large.
    "write.metadata.metrics.default": "none",
}
ID_COLUMNS = ("batch_id", "decision_id")
BOUNDED_NAMES = ("_id", "_fp")
BOUNDED_TYPES = (Scalar("date"), Scalar("timestamp"))
BODY_ROWS_A_GROUP = "1024"

_ICEBERG: Mapping[str, Callable[[], IcebergType]] = {
    "string": StringType,
    "json": StringType,
    "int": IntegerType,
    "long": LongType,
    "float": FloatType,
    "double": DoubleType,
    "boolean": BooleanType,
    "date": DateType,
    "timestamp": TimestamptzType,
    "binary": BinaryType,
}


def iceberg_schema(specs: Sequence[SchemaSpec]) -> Schema:
    """The Iceberg schema of a table: the union of its dataset's versions (ascending), with fresh field ids."""
    columns = union_columns(tuple(specs))
    ids = itertools.count(len(columns) + 1)
    return Schema(
        *(
            NestedField(number, column.name, iceberg_type(column.tree, ids), required=column.required, doc=column.doc)
            for number, column in enumerate(columns, start=1)
        )
    )


def iceberg_type(tree: TypeTree, ids: Iterator[int]) -> IcebergType:
    """The Iceberg type of a declared type; parts take their field ids from `ids` and may be null."""
    match tree:
        case Scalar(name):
            return _ICEBERG[name]()
        case Decimal(precision, scale):
            return DecimalType(precision, scale)
        case ListOf(item):
            number = next(ids)
            return ListType(element_id=number, element=iceberg_type(item, ids), element_required=False)
        case MapOf(value):
            key, number = next(ids), next(ids)
            return MapType(key, StringType(), number, iceberg_type(value, ids), value_required=False)
        case StructOf(fields):
            numbers = [next(ids) for _ in fields]
            return StructType(
                *(
                    NestedField(number, name, iceberg_type(part, ids), required=False)
                    for number, (name, part) in zip(numbers, fields, strict=True)
                )
            )


def versions_of(catalog: Catalog, table: str) -> tuple[SchemaSpec, ...]:
    """All versions of the dataset that writes `table`, ascending; raises UnknownNameError."""
    newest = catalog.table_schema(table, None)
    versions: tuple[SchemaSpec, ...] = catalog.schemas[newest.dataset]
    return versions


def ensure_table(iceberg: IcebergCatalog, catalog: Catalog, table: str) -> Table:
    """The Iceberg table `layer.name`, created or evolved so that every version in `catalog` is registered.

    Callers that may create or evolve hold the table's lock (`Committer.table` does). Raises CatalogError if a
    registered version has changed or is gone, UnknownNameError for a table that no schema declares.
    """
    specs = versions_of(catalog, table)
    try:
        found = iceberg.load_table(table)
    except NoSuchTableError:
        return _create_table(iceberg, specs, table)
    if unregistered_versions(found, specs):
        _evolve_table(found, specs)
    return found


def unregistered_versions(table: Table, specs: tuple[SchemaSpec, ...]) -> list[SchemaSpec]:
    """Versions that the table does not know yet; raises CatalogError if one it knows has changed or is gone."""
    problems = []
    declared = {_property_name(spec): spec for spec in specs}
    for name, value in table.properties.items():
        if not name.startswith(SCHEMA_PROPERTY):
            continue
        spec = declared.pop(name, None)
        if spec is None:
            number = name.rpartition(".v")[2]
            file = f"catalog/schemas/{specs[0].dataset}/v{number}.yaml"
            wrong = f"is gone, but {'.'.join(table.name())} holds rows that were written under it"
            problems.append(Problem(file, "", wrong, "put the file back as it was"))
        elif spec_hash(spec) != value:
            wrong = f"has changed since it was registered with {'.'.join(table.name())}"
            right = f"put it back as it was and declare the change as v{specs[-1].version + 1}.yaml"
            problems.append(Problem(schema_file(spec), "", wrong, right))
    if problems:
        raise CatalogError(problems)
    if table.properties.get(VERSIONS_PROPERTY) != describe_versions(specs):
        return list(declared.values()) or list(specs)
    return list(declared.values())


def partition_spec(spec: SchemaSpec, schema: Schema) -> PartitionSpec:
    """Identity partitioning as the version declares it."""
    names = PARTITION_COLUMNS[spec.partitioned]
    if not names:
        return UNPARTITIONED_PARTITION_SPEC
    return PartitionSpec(
        *(
            PartitionField(schema.find_field(name).field_id, 1000 + number, IdentityTransform(), name)
            for number, name in enumerate(names)
        )
    )


def _sort_order(spec: SchemaSpec, schema: Schema) -> SortOrder:
    fields = []
    for name, direction in sort_keys(spec):
        down = direction == "descending"
        fields.append(
            SortField(
                schema.find_field(name).field_id,
                IdentityTransform(),
                SortDirection.DESC if down else SortDirection.ASC,
                NullOrder.NULLS_LAST,
            )
        )
    return SortOrder(*fields)


def _property_name(spec: SchemaSpec) -> str:
    return f"{SCHEMA_PROPERTY}{spec.dataset}.v{spec.version}"


def _create_table(iceberg: IcebergCatalog, specs: tuple[SchemaSpec, ...], table: str) -> Table:
    schema = iceberg_schema(specs)
    _ensure_namespace(iceberg, table.partition(".")[0])
    return iceberg.create_table(
        table,
        schema,
        partition_spec=partition_spec(specs[-1], schema),
        sort_order=_sort_order(specs[-1], schema),
        properties={**_properties(specs), "comment": specs[-1].description},
    )


def _ensure_namespace(iceberg: IcebergCatalog, name: str) -> None:
    try:
        iceberg.create_namespace_if_not_exists(name)
    except IntegrityError:
        # Another process made it at the same moment for another table, under that table's lock.
        if not iceberg.namespace_exists(name):
            raise


def _properties(specs: tuple[SchemaSpec, ...]) -> dict[str, str]:
    properties = dict(TABLE_PROPERTIES)
    bounded = {*PARTITION_COLUMNS[specs[-1].partitioned], *(name for name, _ in sort_keys(specs[-1]))}
    for column in union_columns(specs):
        metrics = f"write.metadata.metrics.column.{column.name}"
        if column.name in ID_COLUMNS:
            properties[metrics] = "full"
        elif column.name in bounded or column.name.endswith(BOUNDED_NAMES) or column.tree in BOUNDED_TYPES:
            properties[metrics] = "truncate(16)"
        if column.tree == Scalar("binary"):
            properties["write.parquet.row-group-limit"] = BODY_ROWS_A_GROUP
    hashes = {_property_name(spec): spec_hash(spec) for spec in specs}
    return {**properties, **hashes, VERSIONS_PROPERTY: describe_versions(specs)}


def _evolve_table(table: Table, specs: tuple[SchemaSpec, ...]) -> None:
    """Register further versions in one metadata change; existing fields keep their ids."""
    if partition_spec(specs[-1], table.schema()) != table.spec():
        wrong = "partitions its table another way than earlier versions"
        raise CatalogError([Problem(schema_file(specs[-1]), "partitioned", wrong, "keep the earlier partitioning")])
    known = table.schema()
    with table.transaction() as change:
        with change.update_schema() as update:
            for column in union_columns(specs):
                if column.name not in known.column_names:
                    update.add_column(column.name, iceberg_type(column.tree, itertools.count(1)), column.doc)
                    continue
                field = known.find_field(column.name)
                wanted = iceberg_type(column.tree, itertools.count(1))
                if field.field_type.is_primitive and field.field_type != wanted:
                    update.update_column(column.name, field_type=wanted)
                if field.required and not column.required:
                    update.make_column_optional(column.name)
        change.set_properties(_properties(specs))
