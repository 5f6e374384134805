"""Jobs: whole layers over chosen partitions, and a list of any source days in one run."""

import dagster as dg
from pydantic import Field

from assets.events import describe_failures, materialization_of
from assets.layers import MATERIALIZERS
from assets.partitions import days_of
from lakehouse.materialize.books import audit_books


class ListConfig(dg.Config):
    """`keys` are `YYYY-MM-DD|source`, of any day, contiguous or not; `layers` run in the order given."""

    keys: list[str]
    layers: list[str] = Field(default=list(MATERIALIZERS))


@dg.op(required_resource_keys={"lake"}, description="materializes a list of source days, layer by layer")
def each_layer(context: dg.OpExecutionContext, config: ListConfig) -> None:
    """Log one event a partition; a failed partition stops neither the others nor the layers of the others."""
    lake = context.resources.lake
    days, failed = days_of(config.keys), []
    for layer in config.layers:
        results = MATERIALIZERS[layer](lake, days, progress=context.log.info)
        for result in results:
            if result.error is None:
                context.log_event(materialization_of(result))
        failed += [result for result in results if result.error is not None]
        days = sorted(set(days) - {result.partition.day for result in failed})
    audit = audit_books(lake, days)
    if failed or not audit.balanced:
        raise dg.Failure("\n".join([*([describe_failures(failed)] if failed else []), *audit.problems]))


@dg.job(name="materialize_list", description="raw, clean and feature of any list of source days in one run")
def materialize_list_job() -> None:
    """One run for many partitions, also outside the rolling window."""
    each_layer()
