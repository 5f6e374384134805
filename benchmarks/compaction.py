"""A day of 500 small files put together, against Trino's `optimize` of the same files.

Ours is the whole command: manifests read, rows read, sorted, hashed, written, read back and compared, committed. Trino
proves nothing. `ours` and the peer are MB of small files a second, `ratio` is ours over Trino's; the target is at least
1. `detail` says how many files the typical query (one source, one day) and a query of one hour read before and after,
and what clustering the same day by hour takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.table import Table

from benchmarks.lakes import TABLE, entries, server_lake, upkeep_access
from benchmarks.report import Report, print_report, read_options
from lakehouse.lake import Lake
from lakehouse.model.partition import Partition
from lakehouse.query.trino import TrinoAccess, read_rows
from lakehouse.tables.content import content_hash
from lakehouse.tables.layout import LayoutRules
from lakehouse.tables.names import FileName, How
from lakehouse.tables.producer import commit_files, live_files
from lakehouse.tables.scan import scan_rows
from lakehouse.tables.small_files import compact_tables
from lakehouse.tables.writer import NewFile, write_files

SOURCE, PEER = "news", "raw.peer"
FILES, ROWS, ROUNDS = 500, 200, 3
QUICK_FILES, QUICK_ROUNDS = 120, 1
WARM_FILES = 10
FIRST = date(2024, 5, 1)
TOGETHER = LayoutRules(cluster_files=1_000_000)


def fill(table: Table, dt: date, frames: Sequence[pa.Table]) -> None:
    """One small file a frame, in one table snapshot: as many collectors leave a day."""
    key = (SOURCE, dt, 1)
    names = [FileName(How.BATCH, frame["batch_id"][0].as_py(), content_hash(frame)).new() for frame in frames]
    files = write_files(table, [NewFile(key, frame, name) for frame, name in zip(frames, names, strict=True)])
    commit_files(table, live_files(table, [key]), files, [], {})


def make_frames(lake: Lake, dt: date, files: int) -> list[pa.Table]:
    """The day's batches."""
    spec = lake.catalog.table_schema(TABLE)
    return [entries(spec, SOURCE, dt, uuid4().hex, range(ROWS)) for _ in range(files)]


def files_read(table: Table, dt: date, hour: int | None = None) -> int:
    """How many files a query of the day, or of one hour of it, has to open."""
    where: BooleanExpression = And(EqualTo(term="source", value=SOURCE), EqualTo(term="dt", value=dt.isoformat()))
    if hour is not None:
        start = datetime(dt.year, dt.month, dt.day, hour, tzinfo=UTC)
        end = start + timedelta(hours=1)
        inside = And(
            GreaterThanOrEqual(term="collect_time", value=start.isoformat()),
            LessThan(term="collect_time", value=end.isoformat()),
        )
        where = And(where, inside)
    return len(list(table.scan(row_filter=where).plan_files()))


def state_of(lake: Lake, name: str, dt: date) -> tuple[int, str]:
    """Rows and content hash of a day."""
    specs = lake.catalog.schemas["entries"]
    frame = scan_rows(lake.iceberg.load_table(name), specs, {(SOURCE, dt, 1)}, None)
    return frame.num_rows, content_hash(frame)


def compact(lake: Lake, dt: date, rules: LayoutRules) -> float:
    """Seconds of our compaction of one day; ends the benchmark where rows or hash differ."""
    before = state_of(lake, TABLE, dt)
    began = time.perf_counter()
    (report,) = compact_tables(lake.committer, [TABLE], rules, partitions=[Partition(SOURCE, dt, 1)])
    seconds = time.perf_counter() - began
    if state_of(lake, TABLE, dt) != before or report.commits != 1:
        raise SystemExit(f"compaction of {dt} changed rows: {before} became {state_of(lake, TABLE, dt)}")
    return seconds


def optimize(access: TrinoAccess, dt: date) -> float:
    """Seconds of Trino's own compaction of one day of the peer table."""
    began = time.perf_counter()
    list(read_rows(access, f"ALTER TABLE {PEER} EXECUTE optimize WHERE dt = DATE '{dt}'"))
    return time.perf_counter() - began


def measure(lake: Lake, access: TrinoAccess, files: int, rounds: int) -> dict[str, Any]:
    """Seconds by side, each round on a day of its own; the sides take turns, a small round warms up."""
    mine = lake.committer.table(TABLE)
    peer = lake.iceberg.create_table(PEER, mine.schema(), partition_spec=mine.spec(), properties=dict(mine.properties))
    sides: dict[str, list[float]] = {"ours": [], "trino": []}
    found: dict[str, Any] = {}
    for number in range(rounds + 1):
        dt = FIRST + timedelta(days=number)
        frames = make_frames(lake, dt, files if number else WARM_FILES)
        for table in (lake.iceberg.load_table(TABLE), lake.iceberg.load_table(PEER)):
            fill(table, dt, frames)
        before = files_read(lake.iceberg.load_table(TABLE), dt)
        size = sum(file.bytes for file in lake.committer.files(TABLE, Partition(SOURCE, dt, 1)))
        times = {"ours": compact(lake, dt, TOGETHER), "trino": optimize(access, dt)}
        if state_of(lake, TABLE, dt) != state_of(lake, PEER, dt):
            raise SystemExit("the two sides hold different rows")
        if number:
            for side, seconds in times.items():
                sides[side].append(seconds)
            found = {
                "bytes": size,
                "files_read_before": before,
                "files_read_after": files_read(lake.iceberg.load_table(TABLE), dt),
                "files_read_after_trino": files_read(peer.refresh(), dt),
            }
    return {"seconds": sides, **found}


def cluster(lake: Lake, files: int) -> dict[str, Any]:
    """The same day clustered by hour."""
    dt = FIRST - timedelta(days=1)
    fill(lake.iceberg.load_table(TABLE), dt, make_frames(lake, dt, files))
    before = files_read(lake.iceberg.load_table(TABLE), dt, 7)
    seconds = compact(lake, dt, LayoutRules(cluster_files=files))
    table = lake.iceberg.load_table(TABLE)
    return {
        "seconds": round(seconds, 3),
        "files_of_an_hour_before": before,
        "files_of_an_hour_after": files_read(table, dt, 7),
        "files_of_the_day_after": files_read(table, dt),
    }


def main() -> None:
    """Measure on PostgreSQL, MinIO and Trino."""
    options = read_options(__doc__)
    files, rounds = (QUICK_FILES, QUICK_ROUNDS) if options.quick else (FILES, ROUNDS)
    with server_lake(trino=True) as (servers, lake):
        found = measure(lake, upkeep_access(servers), files, rounds)
        clustered = cluster(lake, files)
    medians = {side: statistics.median(seconds) for side, seconds in found["seconds"].items()}
    speeds = {side: found["bytes"] / 1e6 / seconds for side, seconds in medians.items()}
    detail = {
        **found,
        "files": files,
        "rows": files * ROWS,
        "rounds": rounds,
        "medians": {side: round(seconds, 3) for side, seconds in medians.items()},
        "clustered_by_hour": clustered,
        "target": 1.0,
    }
    peers = {"Trino optimize": speeds["trino"]}
    print_report(
        Report(
            "compaction", "MB of small files a second", speeds["ours"], peers, speeds["ours"] / speeds["trino"], detail
        ),
        options,
    )


if __name__ == "__main__":
    main()
