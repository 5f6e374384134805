"""A process that commits to one table, as tests of many processes start it: `python -m tests.commit_worker JOB`.

JOB is JSON: where the lake is, and what to do. It prints one JSON line for each commit.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import create_engine

from lakehouse.model.partition import Partition
from lakehouse.specs.loader import load_catalog
from lakehouse.tables import committer as committer_module
from lakehouse.tables import writer
from lakehouse.tables.committer import Committer
from lakehouse.tables.iceberg import open_iceberg
from lakehouse.tables.locks import FileLocks, PostgresLocks, TableLocks
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parents[1]
TABLE = "raw.entries"
DAY = date(2024, 5, 1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lake of the kernel lies. Without `database` it is SQLite and file locks below `home`."""

    home: str
    database: str | None = None
    warehouse: str | None = None
    properties: Mapping[str, str] | None = None

    def open(self, run_id: str) -> Committer:
        """A committer of its own, as another process would have it."""
        home = Path(self.home)
        url = self.database or f"sqlite:///{home / 'iceberg.db'}"
        locks: TableLocks = PostgresLocks(create_engine(url)) if self.database else FileLocks(home / "locks")
        iceberg = open_iceberg(url, self.warehouse or home / "warehouse", self.properties or {})
        return Committer(iceberg, load_catalog(ROOT / "catalog"), locks, run_id)


def partition(source: str) -> Partition:
    """The one day of a source."""
    return Partition(source, DAY, 1)


def frame(committer: Committer, rows: Sequence[tuple[str, str, int]]) -> pa.Table:
    """Rows of (source, batch id, position)."""
    values = [
        {
            "source": source,
            "dt": DAY,
            "schema_version": 1,
            "batch_id": batch,
            "task_id": "task",
            "list_url_fp": "0" * 32,
            "page_no": 1,
            "position": position,
            "url": f"https://example.com/{source}/{position}",
            "url_fp": f"{position:032x}",
            "entry": {},
            "collect_time": datetime(2024, 5, 1, tzinfo=UTC),
        }
        for source, batch, position in rows
    ]
    return to_arrow(values, committer.catalog.table_schema(TABLE))


def start_worker(
    place: Place, work: Sequence[Mapping[str, Any]], *, run_id: str, die: str = ""
) -> subprocess.Popen[str]:
    """Start a process that does `work`; `die` kills it `before` or `after` its first commit, or while `writing`."""
    job = json.dumps({"place": asdict(place), "work": list(work), "run_id": run_id, "die": die})
    command = [sys.executable, "-m", "tests.commit_worker", job]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _arm(die: str) -> None:
    """Kill this process with SIGKILL at the given point, as power loss would."""

    def kill(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if die == "before":
        committer_module.commit_files = kill  # type: ignore[attr-defined]
    if die == "after":
        committer_module.write_current = kill
    if die == "writing":
        count = iter(range(1))
        write = writer.new_location

        def write_one(*args: Any) -> str:
            return write(*args) if next(count, None) is not None else kill()

        writer.new_location = write_one  # type: ignore[assignment]


def main(job: Mapping[str, Any]) -> None:
    """Do the work and print what each commit said."""
    committer = Place(**job["place"]).open(job["run_id"])
    committer.table(TABLE)
    _arm(job["die"])
    for one in job["work"]:
        rows = frame(committer, [tuple(row) for row in one["rows"]])
        if one["do"] == "append":
            commit = committer.append(TABLE, rows)
        else:
            commit = committer.replace(TABLE, rows, [partition(source) for source in one["sources"]])
        print(json.dumps({"snapshot": commit.snapshot_id, "changed": commit.changed, "do": one["do"]}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
