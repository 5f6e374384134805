"""640 batches by 64 threads in 8 processes into one table, half of them into the same few partitions.

Every process has a committer of its own, as collectors on several machines have, on PostgreSQL and MinIO; upkeep runs
beside them. One batch in ten is given twice, by two threads, and must be there once. `ours` is committed batches a
second; a batch that is lost does not count, and the benchmark ends with an error where one is lost, doubled or failed.
The peers are PyIceberg's own `append` and `overwrite` (each batch replaces a day of its own) with 64 batches each, by
as many threads and processes in the same run; theirs are allowed to fail, and failed ones do not count. `ratio` is ours
over the better peer.
"""

from __future__ import annotations

import logging
import multiprocessing
import statistics
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from multiprocessing.managers import SyncManager
from multiprocessing.pool import Pool
from threading import Barrier
from typing import Any

from pyiceberg.expressions import And, EqualTo
from pyiceberg.table import Table

from benchmarks.lakes import TABLE, entries, server_lake
from benchmarks.report import Report, print_report, read_options
from lakehouse.lake import Lake, open_lake
from lakehouse.settings import Settings
from lakehouse.tables import committer as committer_module
from lakehouse.tables.producer import commit_files
from lakehouse.tables.upkeep import Limits, upkeep

PEERS = ("append", "overwrite")
ROWS, SHARED = 20, 8
FIRST = date(2024, 1, 1)
UPKEEP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many batches, processes, threads of each, and batches of each peer."""

    batches: int = 640
    processes: int = 8
    threads: int = 8
    peer_batches: int = 64


QUICK = Size(batches=40, processes=2, threads=4, peer_batches=8)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One batch as its writer saw it: seconds it took, whether it was committed, what went wrong."""

    batch: int
    seconds: float
    committed: bool
    error: str = ""


def place_of(batch: int) -> tuple[str, date]:
    """Even batches go to a partition of their own, odd ones to one of a few that all writers share."""
    if batch % 2 == 0:
        return f"alone_{batch % 10}", FIRST + timedelta(days=batch)
    return "shared", FIRST + timedelta(days=batch // 2 % SHARED)


def tries_of(batch: int) -> int:
    """How often a batch is given: one in ten twice."""
    return 2 if batch % 10 < 2 and batch % 2 else 1


def write(
    job: str, settings: Settings, threads: int, batches: Sequence[int], start: Barrier
) -> tuple[list[Outcome], int]:
    """What one process does: its batches, on its threads. Also returns how often a commit was tried again."""
    warnings.simplefilter("ignore")
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    tries = Counter[str]()
    with open_lake(settings) as lake, ThreadPoolExecutor(threads) as pool:
        committed = _counting(tries)
        action = _ours(lake) if job == "ours" else _peer(lake, job)
        list(pool.map(lambda _: time.sleep(0.01), range(threads)))
        start.wait()
        outcomes = list(pool.map(lambda batch: _timed(action, batch), batches))
    return outcomes, tries["commit"] - committed()


def _counting(tries: Counter[str]) -> Callable[[], int]:
    """Count tries of our commits and those that succeed."""
    original, guard, done = commit_files, threading.Lock(), Counter[str]()

    def counted(*args: Any, **named: Any) -> int:
        with guard:
            tries["commit"] += 1
        found = original(*args, **named)
        with guard:
            done["commit"] += 1
        return found

    committer_module.commit_files = counted  # type: ignore[attr-defined]
    return lambda: done["commit"]


def _timed(action: Callable[[int], bool], batch: int) -> Outcome:
    began = time.perf_counter()
    try:
        committed = action(batch)
    except Exception as error:  # noqa: BLE001 (what a peer raises is a figure here)
        return Outcome(batch, time.perf_counter() - began, False, f"{type(error).__name__}: {error}"[:200])  # noqa: FBT003
    return Outcome(batch, time.perf_counter() - began, committed)


def _ours(lake: Lake) -> Callable[[int], bool]:
    spec, committer = lake.catalog.table_schema(TABLE), lake.committer
    committer.table(TABLE)
    return lambda batch: committer.append(TABLE, entries(spec, *place_of(batch), f"{batch:032x}", range(ROWS))).changed


def _peer(lake: Lake, job: str) -> Callable[[int], bool]:
    spec = lake.catalog.table_schema(TABLE)

    def action(batch: int) -> bool:
        source, dt = place_of(batch * 2)
        table: Table = lake.iceberg.load_table(f"raw.{job}")
        frame = entries(spec, source, dt, f"{batch:032x}", range(ROWS)).cast(table.schema().as_arrow())
        if job == "append":
            table.append(frame)
        else:
            day = And(EqualTo(term="source", value=source), EqualTo(term="dt", value=dt.isoformat()))
            table.overwrite(frame, overwrite_filter=day)
        return True

    return action


def run(lake: Lake, pool: Pool, manager: SyncManager, job: str, size: Size) -> tuple[list[Outcome], int, float]:
    """All processes at once; their outcomes, retries, and the seconds from the common start to the last commit."""
    count = size.batches if job == "ours" else size.peer_batches
    given = [batch for batch in range(count) for _ in range(tries_of(batch) if job == "ours" else 1)]
    start = manager.Barrier(size.processes + 1)
    # Every process-th batch: the two copies of a batch lie side by side, so different processes have them.
    jobs = [
        pool.apply_async(write, (job, lake.settings, size.threads, given[number :: size.processes], start))
        for number in range(size.processes)
    ]
    start.wait()
    began = time.perf_counter()
    while not all(one.ready() for one in jobs):
        if job == "ours":
            upkeep(lake.committer, [TABLE], Limits(orphan_age=None))
        jobs[-1].wait(UPKEEP_SECONDS if job == "ours" else 0.2)
    seconds = time.perf_counter() - began
    results = [one.get() for one in jobs]
    return [one for outcomes, _ in results for one in outcomes], sum(tries for _, tries in results), seconds


def rows_of(lake: Lake, name: str) -> Counter[int]:
    """Rows by batch, as they are in the table."""
    batches = lake.iceberg.load_table(name).scan(selected_fields=("batch_id",)).to_arrow()["batch_id"]
    return Counter(int(one, 16) for one in batches.to_pylist())


def judge(lake: Lake, name: str, outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    """Figures of one side: batches that are there once and whole, and what became of the others."""
    rows = rows_of(lake, name)
    whole = sum(1 for count in rows.values() if count == ROWS)
    promised = {one.batch for one in outcomes if not one.error}
    times = [one.seconds for one in outcomes if one.committed]
    return {
        "batches_a_second": round(whole / seconds, 3),
        "committed": whole,
        "lost": len(promised - set(rows)),
        "doubled": sum(1 for count in rows.values() if count > ROWS),
        "failed": sum(1 for one in outcomes if one.error),
        "seconds": round(seconds, 2),
        "median_commit": round(statistics.median(times), 3) if times else None,
        "slowest_commit": round(max(times), 3) if times else None,
        "errors": dict(Counter(one.error.partition(":")[0] for one in outcomes if one.error)),
    }


def main() -> None:
    """Measure ours, then the peers."""
    options = read_options(__doc__)
    size = QUICK if options.quick else Size()
    context = multiprocessing.get_context("spawn")
    with (
        server_lake(trino=False) as (_, lake),
        context.Manager() as manager,
        context.Pool(size.processes) as pool,
    ):
        mine = lake.committer.table(TABLE)
        outcomes, retries, seconds = run(lake, pool, manager, "ours", size)
        ours = judge(lake, TABLE, outcomes, seconds) | {"retries": retries}
        if (ours["committed"], ours["lost"], ours["doubled"], ours["failed"]) != (size.batches, 0, 0, 0):
            raise SystemExit(f"of {size.batches} batches some were lost, doubled or failed: {ours}")
        sides = {}
        for job in PEERS:
            name, spec = f"raw.{job}", mine.spec()
            lake.iceberg.create_table(name, mine.schema(), partition_spec=spec, properties=dict(mine.properties))
            outcomes, _, seconds = run(lake, pool, manager, job, size)
            sides[job] = judge(lake, name, outcomes, seconds)
    peers = {f"PyIceberg {job}": side["batches_a_second"] for job, side in sides.items()}
    detail = {
        "batches": size.batches,
        "processes": size.processes,
        "threads": size.processes * size.threads,
        "ours": ours,
        **sides,
    }
    speed = ours["batches_a_second"]
    best = max(peers.values()) or float("nan")
    print_report(Report("writers", "committed batches a second", speed, peers, speed / best, detail), options)


if __name__ == "__main__":
    main()
