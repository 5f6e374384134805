"""`lakehouse upkeep` in a process that kills itself at one point; forked from one that has imported all of it."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

import lakehouse.cli.upkeep as _command
import lakehouse.ledger.ledger as _ledger
import lakehouse.parse as _parse
from lakehouse.cli import main
from lakehouse.materialize import retention
from lakehouse.tables import compaction, garbage
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decisions
from lakehouse.tables.iceberg import LakehouseCatalog
from lakehouse.tables.storage import LocalFiles

IMPORTED = (_command, _ledger, _parse)
"""What commands import when they are called."""


def die() -> None:
    """As `kill -9` would."""
    os.kill(os.getpid(), signal.SIGKILL)


def at(owner: Any, name: str, *, before: bool = False, call: int = 1) -> Callable[[], None]:
    """Die before or after the given call of `owner.name`."""
    original, calls = getattr(owner, name), 0

    def watched(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        mine = calls  # what is called may call it again
        if before and mine == call:
            die()
        result = original(*args, **named)
        if not before and mine == call:
            die()
        return result

    return lambda: setattr(owner, name, watched)


POINTS: dict[str, Callable[[], None]] = {
    "before the new files": at(compaction, "write_files", before=True),
    "after the new files": at(compaction, "write_files"),
    "after the list": at(garbage, "write_list"),
    "before the swap": at(LakehouseCatalog, "_swap", before=True),
    "after the swap": at(LakehouseCatalog, "_swap"),
    "after the tag": at(LakehouseCatalog, "_swap", call=2),
    "before the removal": at(LocalFiles, "remove", before=True),
    "after the removal": at(LocalFiles, "remove"),
    "after the decision": at(Decisions, "record_all"),
    "after the first table": at(Committer, "replace"),
    "before the index": at(retention, "_mark_retired", before=True),
}


def run_until(
    point: str, arguments: list[str], environment: dict[str, str], *, worker: str = "tests.upkeep_worker"
) -> int | None:
    """Run a command in a process of its own that dies at `point` of the module `worker`; its exit code."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker])
    child = context.Process(target=_run, args=(worker, point, arguments, environment))
    child.start()
    child.join()
    return child.exitcode


def _run(worker: str, point: str, arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    importlib.import_module(worker).POINTS[point]()
    main(arguments)
