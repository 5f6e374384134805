"""Planning the typical query on a table of 100,000 partitions: one source, a month, `schema_version >= 1`, by day.

Every partition has a tiny file. Building stops early after 15 minutes, at 20,000 partitions or more. Each reader says
how long it plans, how many data files it opens and how many bytes it reads of them (DuckDB counts them itself; for
PyIceberg and Trino it is the size of the files). `ours` is the planning time through the connection that `lakehouse
sql` uses, opened anew, in seconds; `ratio` is the bytes that it reads over the bytes of the partitions asked for, the
goal at most 1.1. Then one partition is replaced and rolled back while two writers append to others: seconds of each,
and whether the file lists of all other partitions and the hashes of 20 of them stayed.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan

from benchmarks.lakes import server_lake
from benchmarks.report import Report, print_report, read_options
from infra.launcher import Servers
from lakehouse.lake import Lake
from lakehouse.model.partition import Partition
from lakehouse.query import connect
from lakehouse.query.duck import open_duckdb
from lakehouse.query.trino import TrinoAccess, connect_trino
from lakehouse.query.views import literal
from lakehouse.tables.content import content_hash
from lakehouse.tables.manifests import rewrite_manifests
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.producer import all_files
from lakehouse.tables.split import Key
from lakehouse.tables.upkeep import Limits, upkeep

TABLE = "clean.outcomes"
PARTITIONS, LEAST, QUICK_PARTITIONS = 100_000, 20_000, 2_000
DAYS, AT_ONCE, BUDGET_SECONDS = 1_000, 2_000, 900
ROUNDS, QUICK_ROUNDS = 5, 3
FIRST = date(2022, 1, 1)
SOURCE, START, END = "source_000", date(2022, 3, 1), date(2022, 4, 1)
WHERE = f"source = '{SOURCE}' AND dt >= DATE '{START}' AND dt < DATE '{END}' AND schema_version >= 1"
TARGETS = {"bytes_ratio": 1.1, "planning_seconds": 2.0, "commit_seconds": 1.0}
TIMES = ("seconds", "opening")

Reading = dict[str, float]


def build(lake: Lake, partitions: int) -> tuple[int, float]:
    """Append partitions day by day, many sources a day; returns how many there are, and seconds."""
    began, made = time.perf_counter(), 0
    sources = max(1, partitions // DAYS)
    places = [(f"source_{n:03d}", FIRST + timedelta(days=d)) for d in range(DAYS) for n in range(sources)][:partitions]
    for start in range(0, len(places), AT_ONCE):
        lake.committer.append(TABLE, frame_of(lake, places[start : start + AT_ONCE]), id_column="fetch_id")
        made += len(places[start : start + AT_ONCE])
        if made >= LEAST and time.perf_counter() - began > BUDGET_SECONDS:
            break
    return made, time.perf_counter() - began


def frame_of(lake: Lake, places: list[tuple[str, date]], rows_out: int = 1) -> pa.Table:
    """One row a partition."""
    rows = len(places)
    columns = {
        "source": [source for source, _ in places],
        "dt": pa.array([dt for _, dt in places]),
        "schema_version": pa.array([1] * rows, pa.int32()),
        "fetch_id": [f"{source}-{dt}" for source, dt in places],
        "outcome": ["clean"] * rows,
        "reason": pa.nulls(rows, pa.string()),
        "rows_out": pa.array([rows_out] * rows, pa.int32()),
    }
    wanted = lake.committer.catalog.table_schema(TABLE)
    return to_arrow(pa.table(columns), wanted)


def reading(seconds: float, paths: list[str], sizes: dict[str, int]) -> Reading:
    """Planning seconds, files opened, and their bytes."""
    return {"seconds": seconds, "files": len(paths), "bytes": sum(sizes[path] for path in paths)}


def through_pyiceberg(lake: Lake, sizes: dict[str, int]) -> Reading:
    """PyIceberg's own planning of the newest metadata."""
    where: BooleanExpression = And(
        And(EqualTo(term="source", value=SOURCE), GreaterThanOrEqual(term="schema_version", value=1)),
        And(GreaterThanOrEqual(term="dt", value=START.isoformat()), LessThan(term="dt", value=END.isoformat())),
    )
    began = time.perf_counter()
    tasks = list(lake.iceberg.load_table(TABLE).scan(row_filter=where).plan_files())
    return reading(time.perf_counter() - began, [task.file.file_path for task in tasks], sizes)


def through_duckdb(lake: Lake) -> Reading:
    """DuckDB on the metadata file, its connection open already."""
    location = lake.iceberg.load_table(TABLE).metadata_location
    with open_duckdb(lake.reader_properties) as db:
        return _duck(lambda query: db.execute(query).fetchall(), f"iceberg_scan({literal(location)})")


def through_lakehouse_sql(lake: Lake) -> Reading:
    """The connection of `lakehouse sql`, opened anew: its opening counts as planning."""
    began = time.perf_counter()
    with connect(lake) as db:
        opened = time.perf_counter() - began
        found = _duck(lambda query: db.execute(query).fetchall(), TABLE)
    return {**found, "seconds": found["seconds"] + opened, "opening": opened}


def _duck(ask: Callable[[str], list[Any]], source: str) -> Reading:
    query = f"SELECT dt, count(*) FROM {source} WHERE {WHERE} GROUP BY dt ORDER BY dt"
    began = time.perf_counter()
    ask(f"EXPLAIN {query}")
    seconds = time.perf_counter() - began
    (_, text), *_ = ask(f"EXPLAIN (ANALYZE, FORMAT json) {query}")
    profile = json.loads(text)
    files = sum(int(scan["extra_info"]["Total Files Read"]) for scan in _scans(profile))
    return {"seconds": seconds, "files": files, "bytes": profile["total_bytes_read"]}


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if node.get("operator_type") == "TABLE_SCAN":
        yield node
    for child in node.get("children", []):
        yield from _scans(child)


def through_trino(access: TrinoAccess, sizes: dict[str, int]) -> Reading:
    """Trino's EXPLAIN, and the files that the query's rows came from."""
    with connect_trino(access) as connection:
        cursor = connection.cursor()
        began = time.perf_counter()
        cursor.execute(f"EXPLAIN SELECT dt, count(*) FROM {TABLE} WHERE {WHERE} GROUP BY dt")
        cursor.fetchall()
        seconds = time.perf_counter() - began
        cursor.execute(f'SELECT DISTINCT "$path" FROM {TABLE} WHERE {WHERE}')
        return reading(seconds, [path for (path,) in cursor.fetchall()], sizes)


def measure(lake: Lake, access: TrinoAccess, rounds: int) -> dict[str, Reading]:
    """Medians by reader; the first round warms up."""
    files = all_files(lake.iceberg.load_table(TABLE))[0]
    sizes = {one.file_path: one.file_size_in_bytes for some in files.values() for one in some}
    readers: dict[str, Callable[[], Reading]] = {
        "PyIceberg": lambda: through_pyiceberg(lake, sizes),
        "DuckDB": lambda: through_duckdb(lake),
        "Trino": lambda: through_trino(access, sizes),
        "lakehouse sql": lambda: through_lakehouse_sql(lake),
    }
    found: dict[str, Reading] = {}
    for name, reader in readers.items():
        readings = [reader() for _ in range(rounds + 1)][1:]
        medians = {key: statistics.median(one[key] for one in readings) for key in readings[0] if key in TIMES}
        found[name] = {**readings[-1], **medians}
    return found


def wanted_bytes(lake: Lake) -> int:
    """Bytes of the partitions that the query asks for."""
    files = all_files(lake.iceberg.load_table(TABLE))[0]
    asked = [some for key, some in files.items() if key[0] == SOURCE and START <= key[1] < END]
    return sum(one.file_size_in_bytes for some in asked for one in some)


@contextmanager
def two_writers(lake: Lake) -> Iterator[list[int]]:
    """Two threads that append to partitions of their own all the while; yields how many commits each made."""
    stop, made = threading.Event(), [0, 0]

    def go(number: int) -> None:
        while not stop.is_set():
            place = (f"writer_{number}", FIRST + timedelta(days=made[number]))
            lake.committer.append(TABLE, frame_of(lake, [place]), id_column="fetch_id")
            made[number] += 1

    threads = [threading.Thread(target=go, args=(number,)) for number in (0, 1)]
    for one in threads:
        one.start()
    try:
        yield made
    finally:
        stop.set()
        for one in threads:
            one.join()


def lists_of(lake: Lake, but: Key) -> dict[Key, tuple[str, ...]]:
    """Data files by partition, without one partition and those of the two writers."""
    files = all_files(lake.iceberg.load_table(TABLE))[0]
    return {
        key: tuple(sorted(one.file_path for one in some))
        for key, some in files.items()
        if key != but and not key[0].startswith("writer_")
    }


def change_one(lake: Lake, rounds: int) -> dict[str, Any]:
    """Replace a partition and roll it back, while two writers go on."""
    partition = Partition(SOURCE, START, 1)
    key = (SOURCE, START, 1)
    before = lists_of(lake, key)
    sample = [Partition(*one) for one in list(before)[:: max(1, len(before) // 20)][:20]]
    hashes = [content_hash(lake.committer.scan(TABLE, [one])) for one in sample]
    mine = content_hash(lake.committer.scan(TABLE, [partition]))
    seconds: dict[str, list[float]] = {"replace": [], "rollback": []}
    with two_writers(lake) as made:
        for number in range(rounds):
            old = [file.path for file in lake.committer.files(TABLE, partition)]
            frame = frame_of(lake, [(SOURCE, START)], rows_out=number + 2)
            actions: dict[str, Callable[[], Any]] = {
                "replace": lambda frame=frame: lake.committer.replace(TABLE, frame, [partition]),  # type: ignore[misc]
                "rollback": lambda old=old: lake.committer.restore(TABLE, partition, old),  # type: ignore[misc]
            }
            for name, action in actions.items():
                began = time.perf_counter()
                if not action().changed:
                    raise SystemExit(f"{name} changed nothing")
                seconds[name].append(time.perf_counter() - began)
        commits = sum(made)
    same = [content_hash(lake.committer.scan(TABLE, [one])) for one in sample]
    if lists_of(lake, key) != before or same != hashes or content_hash(lake.committer.scan(TABLE, [partition])) != mine:
        raise SystemExit("a replace or a rollback changed another partition, or did not bring the old rows back")
    medians = {name: round(statistics.median(some), 3) for name, some in seconds.items()}
    slowest = {f"slowest_{name}": round(max(some), 3) for name, some in seconds.items()}
    return {**medians, **slowest, "commits_of_two_writers": commits, "other_partitions_unchanged": len(before)}


def main() -> None:
    """Build, measure, change."""
    options = read_options(__doc__)
    wanted, rounds = (QUICK_PARTITIONS, QUICK_ROUNDS) if options.quick else (PARTITIONS, ROUNDS)
    with server_lake(trino=True) as (servers, lake):
        made, seconds = build(lake, wanted)
        upkeep(lake.committer, [TABLE], Limits(keep_untagged=10, orphan_age=None))
        (manifests,) = rewrite_manifests(lake.committer, [TABLE])
        asked = wanted_bytes(lake)
        found = measure(lake, reader_access(servers), rounds)
        changed = change_one(lake, rounds)
    ours = found.pop("lakehouse sql")
    detail = {
        "partitions": made,
        "building_seconds": round(seconds, 1),
        "manifests": {"before": manifests.before, "after": manifests.after, "bytes": manifests.bytes},
        "bytes_of_the_partitions": asked,
        "lakehouse sql": _rounded(ours),
        **{name: _rounded(one) for name, one in found.items()},
        "one_partition": changed,
        "targets": TARGETS,
    }
    peers = {name: one["seconds"] for name, one in found.items()}
    print_report(Report("planning", "seconds to plan", ours["seconds"], peers, ours["bytes"] / asked, detail), options)


def reader_access(servers: Servers) -> TrinoAccess:
    """Trino as its default user."""
    settings = servers.settings()
    return TrinoAccess(settings.trino_host or "", settings.trino_port or 0)


def _rounded(one: Reading) -> Reading:
    return {name: round(value, 3) for name, value in one.items()}


if __name__ == "__main__":
    main()
