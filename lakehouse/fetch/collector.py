"""The collector: works one day of one source until nothing is left to do, and survives being killed at any moment."""

from __future__ import annotations

from datetime import date

from lakehouse.fetch.report import CollectorDeps, CollectReport, Progress
from lakehouse.specs.source import SourceSpec


def collect_day(
    source: SourceSpec, dt: date, *, deps: CollectorDeps, progress: Progress | None = None, force: bool = True
) -> CollectReport:
    """Collect what is due for one day: enqueue due tasks, work the queue until it is empty, spool, upload.

    With `force` a batch task of today is due from the start of the day, else once its scheduled time has passed. A day
    whose tasks have all ended does nothing. Raises UnavailableError when the ledger or the store does not answer, and
    ConfigError for a day in the future; running again goes on where it stopped.
    """
    raise NotImplementedError
