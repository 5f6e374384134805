"""`python -m assets.demo`: the main job on the demo site, in one Dagster run, on the local profile.

Starts the site, asks for today of every demo source and two past days of the one addressed by date, and writes what
came of it as JSON. What was collected is shown by `lakehouse demo`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import httpx

from assets.build import build_defs
from assets.jobs import materialize_list_job
from assets.partitions import SOURCES, key_of
from assets.serve import prepare_dagster_home
from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.demo_site.server import DEFAULT_PORT, HOST, SERVER_NAME
from lakehouse.errors import ConfigError, LakehouseError
from lakehouse.fetch.browser import find_browser
from lakehouse.model.partition import SourceDay
from lakehouse.settings import Profile, Settings, load_settings
from lakehouse.specs.loader import load_catalog
from lakehouse.specs.source import Fetcher, SourceSpec

PREFIX = "demo_"
PAST_DAYS = 2


@contextmanager
def open_site(settings: Settings) -> Iterator[tuple[Settings, str]]:
    """The site's address for as long as the block runs, and settings whose catalog leads there.

    A demo site that runs already is used. Where something else has its port, the site takes a free one and a copy of
    the catalog leads to it.
    """
    usual = f"http://{HOST}:{DEFAULT_PORT}"
    with ExitStack() as stack:
        if is_demo_site(usual):
            httpx.post(f"{usual}/_reset", timeout=10)
            yield settings, usual
            return
        try:
            stack.enter_context(run_site(port=DEFAULT_PORT))
        except OSError:
            site = stack.enter_context(run_site())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakehouse-demo-")))
            catalog = copy_catalog(settings.catalog_dir, folder / "catalog", site.server_port)
            yield settings.model_copy(update={"catalog_dir": catalog}), site.url
        else:
            yield settings, usual


def is_demo_site(address: str) -> bool:
    """Whether the demo site, and not something else, answers at `address`."""
    try:
        return bool(httpx.head(address, timeout=2).headers.get("server") == SERVER_NAME)
    except httpx.HTTPError:
        return False


def demo_days(settings: Settings) -> list[SourceDay]:
    """Today of every demo source, and the past days of those addressed by date; raises ConfigError without any."""
    today = settings.clock.today()
    sources = demo_sources(settings)
    past = [today - timedelta(days=n) for n in range(1, PAST_DAYS + 1)]
    return sorted(SourceDay(spec.source, day) for spec in sources for day in (today, *(past if spec.by_date else ())))


def demo_sources(settings: Settings) -> list[SourceSpec]:
    """The demo's sources; those that need a browser are left out, with a word, where no Chromium is to be found."""
    declared = load_catalog(settings.catalog_dir).sources
    found = [spec for name, spec in declared.items() if name.startswith(PREFIX)]
    if not found:
        raise ConfigError(f"{settings.catalog_dir}/sources has no {PREFIX}*.yaml; run the demo in the project's folder")
    try:
        find_browser(settings.browser_path)
    except ConfigError as error:
        if settings.browser_path is not None:
            raise
        scripted = [spec.source for spec in found if spec.fetcher is Fetcher.BROWSER]
        sys.stderr.write(f"  leaving out {', '.join(scripted)}: {error}\n")
        found = [spec for spec in found if spec.source not in scripted]
    return found


def run_days(settings: Settings, days: Sequence[SourceDay]) -> dict[str, Any]:
    """Materialize the days in one Dagster run of this process; what each partition became, and what failed."""
    prepare_dagster_home(settings)
    job = build_defs(settings).resolve_job_def(materialize_list_job.name)
    job = job.with_logger_defs({"console": dg.LoggerDefinition(progress_lines)})
    config = {
        "ops": {"each_layer": {"config": {"keys": [key_of(day) for day in days]}}},
        "loggers": {"console": {}},
    }
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions(str(SOURCES.name), sorted({day.source for day in days}))
        run = job.execute_in_process(run_config=config, instance=instance, raise_on_error=False)
        return {
            "run_id": run.run_id,
            "success": run.success,
            "partitions": [describe_event(event) for event in run.all_events if event.is_step_materialization],
            "failures": [describe_failure(event) for event in run.all_events if event.is_step_failure],
        }


def describe_event(event: dg.DagsterEvent) -> dict[str, Any]:
    """A materialization event in short: table, partition, whether this run changed it, and its rows."""
    made = event.step_materialization_data.materialization
    return {
        "table": ".".join(made.asset_key.path),
        "partition": str(made.partition),
        "changed": made.metadata["changed"].value,
        "rows": made.metadata["dagster/row_count"].value,
    }


def describe_failure(event: dg.DagsterEvent) -> str:
    """The message of a failed step, without its traceback."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    return data.error_display_string.strip().splitlines()[0] if data.error else str(event.message)


def progress_lines(_: dg.InitLoggerContext) -> logging.Logger:
    """A logger to standard error of what the work itself says; Dagster's own events stay in its storage."""
    logger = logging.getLogger("lakehouse.demo")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.addFilter(is_said_by_work)
        handler.setFormatter(logging.Formatter("  %(message)s"))
        logger.addHandler(handler)
    return logger


def is_said_by_work(record: logging.LogRecord) -> bool:
    """Whether a log record is a message of the work, not one of Dagster's events; it then shows only that message."""
    meta = getattr(record, "dagster_meta", {})
    if meta.get("dagster_event") is not None:
        return False
    record.msg, record.args = meta.get("orig_message", record.getMessage()), ()
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns 0 if every partition was materialized."""
    parser = argparse.ArgumentParser(prog="python -m assets.demo", description="run the main job on the demo site")
    parser.add_argument("--report", type=Path, required=True, help="file that gets what came of it, as JSON")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        with open_site(load_settings(profile=Profile.LOCAL)) as (settings, address):
            report = {"site": address, **run_days(settings, demo_days(settings))}
    except LakehouseError as error:
        sys.stderr.write(f"lakehouse: {error}\n")
        return error.exit_code
    report["seconds"] = round(time.perf_counter() - started, 1)
    options.report.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
    return 0 if report["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
