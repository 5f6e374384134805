"""The raw, clean and feature assets: a list of partitions in, one library call, one event a partition out."""

from collections.abc import Callable, Iterator, Sequence

import dagster as dg

from assets.events import asset_key_of, columns_of_spec, yield_results
from assets.partitions import days_of
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import PartitionResult
from lakehouse.specs.loader import Catalog

Materializer = Callable[..., list[PartitionResult]]
BOOKS = "books_balance"
RAW_TABLES = ("raw.fetches", "raw.entries", "raw.tasks")
FEATURE_TABLES = ("feature.articles", "feature.articles_current", "feature.source_daily")
MATERIALIZERS: dict[str, Materializer] = {
    "raw": materialize_raw,
    "clean": materialize_clean,
    "feature": materialize_feature,
}


def clean_tables(catalog: Catalog) -> tuple[str, ...]:
    """The record tables that sources write, then rejects and outcomes."""
    records = sorted(spec[-1].table for spec in catalog.schemas.values() if spec[-1].frame == "record")
    return (*records, "clean.rejects", "clean.outcomes")


def specs_of(catalog: Catalog, tables: Sequence[str], upstream: Sequence[str]) -> list[dg.AssetSpec]:
    """Asset specs of one layer, described by the registered schemas."""
    return [
        dg.AssetSpec(
            key=asset_key_of(table),
            deps=[asset_key_of(name) for name in upstream],
            group_name=table.split(".", maxsplit=1)[0],
            description=catalog.table_schema(table).description,
            kinds={"iceberg"},
            metadata={
                "dagster/table_name": table,
                "dagster/column_schema": columns_of_spec(catalog.table_schema(table)),
            },
        )
        for table in tables
    ]


def define_layer(
    layer: str,
    catalog: Catalog,
    partitions: dg.MultiPartitionsDefinition,
    tables: Sequence[str],
    upstream: Sequence[str] = (),
) -> dg.AssetsDefinition:
    """One multi-asset that makes all tables of a layer for every partition it is asked for, in one run."""
    checks = [
        dg.AssetCheckSpec(
            BOOKS,
            asset=asset_key_of("clean.outcomes"),
            blocking=True,
            description="every fetch has one outcome, and clean rows are the sum of what the clean fetches gave",
        )
    ]

    @dg.multi_asset(
        name=layer,
        specs=specs_of(catalog, tables, upstream),
        check_specs=checks if layer == "clean" else None,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={"lake"},
    )
    def make(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        days = days_of(context.partition_keys)
        results = MATERIALIZERS[layer](context.resources.lake, days, progress=context.log.info)
        yield from yield_results(context, results, tables)
        if layer == "clean":
            audit = audit_books(context.resources.lake, days)
            yield dg.AssetCheckResult(
                passed=audit.balanced,
                check_name=BOOKS,
                asset_key=asset_key_of("clean.outcomes"),
                metadata={"days": len(days), "fetches": audit.fetches, "problems": list(audit.problems)},
            )

    return make
