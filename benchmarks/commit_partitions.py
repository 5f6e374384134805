"""400 partitions of 100 rows in one commit, against PyIceberg's own append of the same frame.

Ours is the whole commit as the pipeline makes it: rows looked for by their batch, sorted, split, hashed, written,
committed under the lock, `CURRENT` written. The peer is `Table.append` on the frame in 400 Arrow chunks (`chunked`, as
frames arrive that are put together from partitions) and on the frame in one chunk (`combined`). `ratio` is chunked over
ours on local files; `detail` has the combined frame and the same on MinIO.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from benchmarks.report import Report, print_report, read_options
from infra import launcher
from infra.programs import minio_binary
from lakehouse.lake import s3_properties
from lakehouse.settings import WAREHOUSE_BUCKET
from lakehouse.specs.loader import Catalog, load_catalog
from lakehouse.tables.committer import Committer
from lakehouse.tables.iceberg import LakehouseCatalog, open_iceberg
from lakehouse.tables.locks import FileLocks
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parent.parent
TABLE = "raw.entries"
PARTITIONS, ROWS, WARM_PARTITIONS = 400, 100, 16
ROUNDS, QUICK_ROUNDS = 5, 3
TARGETS = {"local": 6.0, "minio": 3.0}

Sides = dict[str, list[float]]


def make_frame(catalog: Catalog, batch: str, partitions: int = PARTITIONS) -> pa.Table:
    """Partitions of 100 rows, one Arrow chunk each, in no order."""
    spec = catalog.table_schema(TABLE)
    parts = []
    for number in range(partitions):
        dt = date(2024, 1, 1) + timedelta(days=number * 7 % PARTITIONS // 8)
        parts.append(to_arrow([_row(f"source_{number % 8}", dt, batch, row) for row in range(ROWS)], spec))
    return pa.concat_tables(parts)


def _row(source: str, dt: date, batch: str, number: int) -> dict[str, Any]:
    name = f"{source}{dt:%Y%m%d}{number:04d}"
    return {
        "source": source,
        "dt": dt,
        "schema_version": 1,
        "batch_id": batch,
        "task_id": f"{abs(hash(source)):032x}"[:32],
        "list_url_fp": f"{abs(hash(dt)):032x}"[:32],
        "page_no": 1 + number // 20,
        "position": number % 20,
        "url": f"https://news.example.com/{dt:%Y/%m/%d}/{name}.html",
        "url_fp": f"{abs(hash(name)):032x}"[:32],
        "entry": {"title": f"第{number}条新闻 {name}", "date": f"{dt:%Y-%m-%d}"},
        "collect_time": datetime(2024, 6, 1, tzinfo=UTC) + timedelta(seconds=number),
    }


def measure(iceberg: LakehouseCatalog, catalog: Catalog, locks: Path, rounds: int) -> Sides:
    """Seconds of each round by side; every commit goes to a table of its own, the sides take turns.

    A small round before the others warms up.
    """
    sides: Sides = {"ours": [], "chunked": [], "combined": []}
    committer = Committer(iceberg, catalog, FileLocks(locks), "benchmark")
    for round_ in range(rounds + 1):
        partitions = PARTITIONS if round_ else WARM_PARTITIONS
        frame = make_frame(catalog, uuid4().hex, partitions)
        fresh = committer.table(TABLE)
        times = {"ours": _seconds(partial(committer.append, TABLE, frame))}
        _check_rows(iceberg, TABLE, partitions * ROWS)
        for side, given in (("chunked", frame), ("combined", frame.combine_chunks())):
            name = f"raw.peer_{side}_{round_}"
            table = iceberg.create_table(
                name, fresh.schema(), partition_spec=fresh.spec(), properties=dict(fresh.properties)
            )
            times[side] = _seconds(partial(table.append, given))
            _check_rows(iceberg, name, partitions * ROWS)
        iceberg.drop_table(TABLE)
        if round_:
            for side, seconds in times.items():
                sides[side].append(seconds)
    return sides


def _seconds(action: Callable[[], Any]) -> float:
    gc.collect()
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _check_rows(iceberg: LakehouseCatalog, name: str, wanted: int) -> None:
    rows = sum(task.file.record_count for task in iceberg.load_table(name).scan().plan_files())
    if rows != wanted:
        raise SystemExit(f"{name} holds {rows} rows instead of {wanted}")


@contextmanager
def minio_catalog(folder: Path) -> Iterator[LakehouseCatalog]:
    """A catalog in SQLite whose warehouse lies in a MinIO of its own."""
    servers = launcher.start(folder / "servers", trino=False)
    try:
        settings = servers.settings(catalog_dir=ROOT / "catalog")
        properties = s3_properties(settings, settings.pipeline_access_key, settings.pipeline_secret_key)
        yield open_iceberg(f"sqlite:///{folder}/minio.db", f"s3://{WAREHOUSE_BUCKET}/bench", properties)
    finally:
        servers.stop()


def summarize(sides: Sides, store: str) -> Mapping[str, Any]:
    """Medians and ratios of one store."""
    medians = {side: round(statistics.median(values), 4) for side, values in sides.items()}
    ratio = medians["chunked"] / medians["ours"]
    return {
        "seconds": medians,
        "chunked_over_ours": round(ratio, 2),
        "combined_over_ours": round(medians["combined"] / medians["ours"], 2),
        "target": TARGETS[store],
        "rounds": {side: [round(value, 3) for value in values] for side, values in sides.items()},
    }


def main() -> None:
    """Measure local files, and MinIO where it is installed."""
    options = read_options(__doc__)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    catalog = load_catalog(ROOT / "catalog")
    with tempfile.TemporaryDirectory(prefix="lakehouse-bench-") as text:
        folder = Path(text)
        local = summarize(
            measure(open_iceberg(f"sqlite:///{folder}/c.db", folder / "warehouse"), catalog, folder, rounds), "local"
        )
        if minio_binary() is None:
            remote: Mapping[str, Any] = {"skipped": "MinIO is not installed; run `python -m infra install`"}
        else:
            with minio_catalog(folder) as iceberg:
                remote = summarize(measure(iceberg, catalog, folder, rounds), "minio")
    seconds = local["seconds"]
    peers = {"Table.append, 400 chunks": seconds["chunked"], "Table.append, combined": seconds["combined"]}
    sizes = {"partitions": PARTITIONS, "rows_each": ROWS, "rounds": rounds}
    print_report(
        Report(
            "commit_partitions",
            "seconds a commit",
            seconds["ours"],
            peers,
            local["chunked_over_ours"],
            {**sizes, "local": local, "minio": remote},
        ),
        options,
    )


if __name__ == "__main__":
    main()
