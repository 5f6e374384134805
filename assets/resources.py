"""The one resource: an open lake, bound to the run that uses it."""

from collections.abc import Iterator

import dagster as dg

from lakehouse.lake import Lake, open_lake
from lakehouse.logs import configure_logs
from lakehouse.settings import Settings


def define_lake(settings: Settings) -> dg.ResourceDefinition:
    """A resource that opens the lake of `settings` when a run needs it and closes it afterwards."""

    @dg.resource(description="Iceberg catalog, ledger and object store of one profile")
    def lake(context: dg.InitResourceContext) -> Iterator[Lake]:
        configure_logs(settings.clock, settings.log_format, settings.log_level)
        opened = open_lake(settings, run_id=context.run.run_id if context.run else None)
        try:
            yield opened
        finally:
            opened.close()

    return lake
