"""Runs the main job in a process of its own and kills it at one point: `python killed.py '<json>'`.

The JSON has `days` ([[source, dt], …]) and `point`, a name of POINTS or null; settings come from the environment. The
kill is a SIGKILL that the process sends itself, so nothing is cleaned up, flushed or given back.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from lakehouse.lake import open_lake
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.materialize import clean, raw
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.model.partition import SourceDay
from lakehouse.settings import load_settings
from lakehouse.snapshots.spool import Spool
from lakehouse.tables.committer import Committer
from lakehouse.tables.iceberg import LakehouseCatalog


def die(*_: Any, **__: Any) -> None:
    """As `kill -9` would."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_before(owner: Any, name: str, call: int = 1) -> Callable[[], None]:
    """Die instead of the given call of `owner.name`."""
    return lambda: _watch(owner, name, call, die, None)


def die_after(owner: Any, name: str, call: int = 1) -> Callable[[], None]:
    """Die when the given call of `owner.name` has returned."""
    return lambda: _watch(owner, name, call, None, die)


def _watch(owner: Any, name: str, call: int, before: Any, after: Any) -> None:
    original, calls = getattr(owner, name), 0

    def watched(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        mine = calls  # what is called may call it again
        if before is not None and mine == call:
            before()
        result = original(*args, **named)
        if after is not None and mine == call:
            after()
        return result

    setattr(owner, name, watched)


POINTS: dict[str, Callable[[], None]] = {
    "after the third fetch, before its spool file": die_before(Spool, "write", 3),
    "after the third fetch is spooled, before the ledger": die_after(Spool, "write", 3),
    "after the bodies are stored, before the batch is registered": die_before(BatchIndex, "register"),
    "after upload, before commit": die_before(raw, "commit_batches"),
    "after the data files are written, before commit": die_before(LakehouseCatalog, "commit_table"),
    "after the metadata is written, before the swap": die_before(LakehouseCatalog, "_swap"),
    "after the swap, before the committer knows": die_after(LakehouseCatalog, "_swap"),
    "after the commit of raw.tasks, before raw.entries": die_after(Committer, "append", 1),
    "after commit, before the ledger": die_before(BatchIndex, "mark_committed"),
    "after the ledger, before the decision": die_before(raw, "newest_marks"),
    "after the decision, before the state": die_before(raw, "record_state"),
    "after clean.rejects, before clean.outcomes": die_after(Committer, "replace", 1),
    "after the clean tables, before the effective version": die_before(clean, "set_first_effective"),
    "after the effective version, before the state": die_before(clean, "record_state"),
    "after the first feature table": die_after(Committer, "replace", 4),
    "at the last state of all": die_before(PartitionIndex, "set_state", 8),
}


def main() -> None:
    """Arm the point, then run the three layers."""
    job = json.loads(sys.argv[1])
    if job["point"] is not None:
        POINTS[job["point"]]()
    days = [SourceDay(source, date.fromisoformat(dt)) for source, dt in job["days"]]
    with open_lake(load_settings()) as lake:
        for materialize in (materialize_raw, materialize_clean, materialize_feature):
            failed = [result.error for result in materialize(lake, days) if result.error]
            if failed:
                sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
