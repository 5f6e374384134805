"""The views in Trino, kept in step with the tables; nothing to do where no Trino is set up."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.errors import UnavailableError
from lakehouse.lake import Lake
from lakehouse.logs import get_log
from lakehouse.query.trino import TrinoAccess
from lakehouse.query.trino_views import publish_views
from lakehouse.tables.versions import VERSIONS_PROPERTY


def refresh_views(lake: Lake) -> list[str]:
    """Make or mend the views of all tables of records; the names of those that changed.

    Raises UnavailableError where Trino does not answer.
    """
    settings = lake.settings
    if settings.trino_host is None or settings.trino_port is None:
        return []
    access = TrinoAccess(settings.trino_host, settings.trino_port, "upkeep", "lakehouse_upkeep")
    return publish_views(access, lake.iceberg)


def refresh_after(lake: Lake, tables: Iterable[str]) -> None:
    """`refresh_views` where this process meets columns of `tables` that it has not met; a silent Trino is logged.

    The rows are committed then, and the next run or the night's upkeep makes the views.
    """
    if lake.settings.trino_host is None:
        return
    shapes = {(name, lake.committer.table(name).properties.get(VERSIONS_PROPERTY, "")) for name in tables}
    if shapes <= lake.shapes_in_trino:
        return
    try:
        changed = refresh_views(lake)
    except UnavailableError as error:
        get_log(run=lake.run_id).warning("views.late", reason=str(error))
        return
    lake.shapes_in_trino |= shapes
    if changed:
        get_log(run=lake.run_id).info("views.made", views=changed)
