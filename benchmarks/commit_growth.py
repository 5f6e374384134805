"""Does a commit stay as fast after a thousand others? Appends and replaces of small partitions, with upkeep on.

Appends add one batch each, source by source and day by day. Replaces write every partition twice, so each second one
removes a file. Upkeep (expiry and garbage collection) runs after every 10 commits, outside the figures. `ratio` is the
median of the last 10 commits over the median of the first 10, the worse of appends and replaces: 1 is perfect, and the
target is at most 1.5. The peer is the first 10.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from benchmarks.report import Report, print_report, read_options
from lakehouse.clock import Clock
from lakehouse.logs import configure_logs
from lakehouse.model.partition import Partition
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.committer import Commit, Committer
from lakehouse.tables.iceberg import open_iceberg
from lakehouse.tables.locks import FileLocks
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.upkeep import Limits, upkeep

ROOT = Path(__file__).parent.parent
APPENDS, REPLACES = "raw.entries", "clean.outcomes"
COMMITS, QUICK_COMMITS = 1000, 300
SOURCES, ROWS, UPKEEP_EVERY, EDGE = 20, 20, 10, 10
TARGET = 1.5


def place_of(number: int) -> tuple[str, date]:
    """Source and day of the n-th partition: all sources of a day, then the next day."""
    return f"source_{number % SOURCES}", date(2024, 1, 1) + timedelta(days=number // SOURCES)


def append_once(committer: Committer, number: int) -> Callable[[], Commit]:
    """The n-th append, with its frame made already."""
    source, dt = place_of(number)
    batch = uuid4().hex
    rows = [
        {
            "source": source,
            "dt": dt,
            "schema_version": 1,
            "batch_id": batch,
            "task_id": "0" * 32,
            "list_url_fp": "0" * 32,
            "page_no": 1,
            "position": position,
            "url": f"https://{source}.example.com/{dt}/{position}.html",
            "url_fp": uuid4().hex,
            "entry": {"title": f"{source} {position}"},
            "collect_time": datetime(2024, 6, 1, tzinfo=UTC) + timedelta(seconds=position),
        }
        for position in range(ROWS)
    ]
    frame = to_arrow(rows, committer.catalog.table_schema(APPENDS))
    return lambda: committer.append(APPENDS, frame)


def replace_once(committer: Committer, number: int) -> Callable[[], Commit]:
    """The n-th replace, with its frame made already; two in a row write one partition."""
    source, dt = place_of(number // 2)
    rows: list[dict[str, Any]] = [
        {
            "source": source,
            "dt": dt,
            "schema_version": 1,
            "fetch_id": uuid4().hex,
            "outcome": "clean",
            "reason": None,
            "rows_out": 1,
        }
        for _ in range(ROWS)
    ]
    frame: pa.Table = to_arrow(rows, committer.catalog.table_schema(REPLACES))
    return lambda: committer.replace(REPLACES, frame, [Partition(source, dt, 1)])


def measure(committer: Committer, table: str, commits: int) -> tuple[list[float], list[float]]:
    """Seconds of each commit to one table, by the clock and of processor time."""
    make = append_once if table == APPENDS else replace_once
    committer.table(table)
    seconds, processor = [], []
    for number in range(commits):
        commit = make(committer, number)
        began, used = time.perf_counter(), time.process_time()
        done = commit()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        if not done.changed:
            raise SystemExit(f"commit {number} to {table} changed nothing")
        if number % UPKEEP_EVERY == UPKEEP_EVERY - 1:
            upkeep(committer, [table], Limits(orphan_age=None))
    held = committer.iceberg.load_table(table)
    partitions = commits if table == APPENDS else commits // 2
    rows = sum(task.file.record_count for task in held.scan().plan_files())
    if rows != partitions * ROWS:
        raise SystemExit(f"{table} holds {rows} rows instead of {partitions * ROWS}")
    return seconds, processor


def summarize(seconds: list[float], processor: list[float]) -> dict[str, float]:
    """Medians of the edges and of the whole."""
    first, last = statistics.median(seconds[:EDGE]), statistics.median(seconds[-EDGE:])
    first_cpu, last_cpu = statistics.median(processor[:EDGE]), statistics.median(processor[-EDGE:])
    return {
        "first_10": round(first, 4),
        "last_10": round(last, 4),
        "ratio": round(last / first, 3),
        "median": round(statistics.median(seconds), 4),
        "processor_ratio": round(last_cpu / first_cpu, 3),
        "p95": round(statistics.quantiles(seconds, n=20)[-1], 4),
    }


def main() -> None:
    """Measure appends, then replaces."""
    options = read_options(__doc__)
    configure_logs(Clock.in_zone("UTC"), level="WARNING")
    commits = QUICK_COMMITS if options.quick else COMMITS
    with tempfile.TemporaryDirectory(prefix="lakehouse-bench-") as text:
        folder = Path(text)
        iceberg = open_iceberg(f"sqlite:///{folder}/c.db", folder / "warehouse")
        committer = Committer(iceberg, load_catalog(ROOT / "catalog"), FileLocks(folder / "locks"), "benchmark")
        committer.append("raw.tasks", to_arrow([], committer.catalog.table_schema("raw.tasks")))
        sides = {"appends": summarize(*measure(committer, APPENDS, commits))}
        sides["replaces"] = summarize(*measure(committer, REPLACES, commits))
    worse = max(sides.values(), key=lambda side: side["ratio"])
    detail = {"commits": commits, "rows_a_commit": ROWS, "upkeep_every": UPKEEP_EVERY, "target": TARGET, **sides}
    peers = {"first 10 commits": worse["first_10"]}
    print_report(Report("commit_growth", "seconds a commit", worse["last_10"], peers, worse["ratio"], detail), options)


if __name__ == "__main__":
    main()
