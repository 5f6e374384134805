"""Running the collector for one source and day with a lake's clients."""

from __future__ import annotations

import time

from lakehouse.fetch.collector import collect_day
from lakehouse.fetch.report import CollectorDeps, CollectReport
from lakehouse.lake import Lake
from lakehouse.materialize.result import ProgressSink
from lakehouse.model.partition import SourceDay

TELL_EVERY_S = 2.0


def collect(lake: Lake, day: SourceDay, say: ProgressSink) -> CollectReport:
    """Collect what is due for a day and upload it; what a dead process of this host left is uploaded as well."""
    deps = CollectorDeps(
        clock=lake.clock,
        ledger=lake.ledger,
        store=lake.store,
        spool=lake.spool,
        worker_id=lake.worker_id,
        max_body_bytes=lake.settings.max_body_bytes,
        browser_path=lake.settings.browser_path,
    )

    told = time.monotonic()

    def tell(report: CollectReport) -> None:
        nonlocal told
        if time.monotonic() - told < TELL_EVERY_S:
            return
        told = time.monotonic()
        say(f"{day.key}: {report.fetched} fetched, {report.failed} failed, {report.limited} limited")

    return collect_day(lake.catalog.source(day.source), day.dt, deps=deps, progress=tell)


def describe_report(report: CollectReport) -> str:
    """What a person should know of a collection that left something open or did nothing; empty when all went well."""
    parts = []
    if report.reason:
        parts.append(f"nothing collected: {report.reason}")
    if report.waiting:
        parts.append(f"{report.waiting} tasks wait for a later run")
    if report.torn:
        parts.append(f"{len(report.torn)} half-written spool files were set aside")
    return "; ".join(parts)
