"""What Dagster is told of each partition: Dagster's standard metadata, the table snapshot and a preview."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from assets.partitions import key_of
from lakehouse.materialize.result import PartitionResult
from lakehouse.specs.schema import SchemaSpec

PREVIEW_CHARS = 60
SHARED = ("source", "dt", "schema_version")


def asset_key_of(table: str) -> dg.AssetKey:
    """`clean.articles` as the asset key `clean/articles`."""
    return dg.AssetKey(table.split("."))


def columns_of(columns: Iterable[tuple[str, str, str]]) -> dg.TableSchema:
    """Dagster's column schema from (name, type, description)."""
    return dg.TableSchema(columns=[dg.TableColumn(name=n, type=t, description=d) for n, t, d in columns])


def columns_of_spec(spec: SchemaSpec) -> dg.TableSchema:
    """Dagster's column schema of a dataset's declared fields."""
    return columns_of((field.name, field.type, field.description) for field in spec.fields)


def metadata_of(result: PartitionResult) -> dict[str, Any]:
    """Metadata of one materialized partition; the row count is that partition's own."""
    metadata: dict[str, Any] = {
        "dagster/table_name": result.table,
        "dagster/partition_row_count": result.row_count,
        "dagster/column_schema": columns_of(result.columns),
        "dagster/row_count": result.row_count,
        "dagster/uri": dg.MetadataValue.path(result.uri),
        "state": result.state.value,
        "changed": result.changed,
        "table_snapshot_id": str(result.snapshot_id) if result.snapshot_id is not None else "none",
        "preview": preview_of(result.preview),
    }
    metadata.update({f"rows/{name}": count for name, count in result.rows.items()})
    return metadata


def preview_of(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue | str:
    """The first rows as a table of short texts, without nested values and what all rows of a partition share."""
    if not rows:
        return "no rows"
    nested = {name for row in rows for name, value in row.items() if isinstance(value, (list, dict))}
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in {*SHARED, *nested}]
    records = [dg.TableRecord({name: _short(row.get(name)) for name in names}) for row in rows]
    return dg.MetadataValue.table(records, schema=dg.TableSchema.from_name_type_dict(dict.fromkeys(names, "string")))


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= PREVIEW_CHARS else text[: PREVIEW_CHARS - 1] + "…"


def materialization_of(result: PartitionResult) -> dg.AssetMaterialization:
    """An event of its own for one partition, for runs that are not bound to Dagster's partitions."""
    return dg.AssetMaterialization(
        asset_key=asset_key_of(result.table), partition=key_of(result.partition.day), metadata=metadata_of(result)
    )


def yield_results(
    context: dg.AssetExecutionContext, results: Sequence[PartitionResult], tables: Sequence[str]
) -> Iterator[dg.MaterializeResult[None]]:
    """One event a partition with its own metadata. If a partition failed, only the good ones get an event."""
    failed = [result for result in results if result.error is not None]
    if failed:
        for result in results:
            if result.error is None:
                context.log_event(materialization_of(result))
        raise dg.Failure(describe_failures(failed))
    for result in results:
        context.add_asset_metadata(metadata_of(result), asset_key_of(result.table), key_of(result.partition.day))
    for table in tables:
        yield dg.MaterializeResult(asset_key=asset_key_of(table))


def describe_failures(failed: Sequence[PartitionResult]) -> str:
    """Which partitions failed and why, a line each."""
    lines = sorted({f"{result.partition.day.key}: {result.error}" for result in failed})
    return f"{len(lines)} of the asked partitions failed:\n" + "\n".join(lines)
