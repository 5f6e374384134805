"""Commands that change history, in a process that kills itself at one point; forked from one that imported it all."""

from __future__ import annotations

from collections.abc import Callable

import lakehouse.cli.effective as _effective
import lakehouse.cli.fix as _fix
import lakehouse.ledger.ledger as _ledger
import lakehouse.parse as _parse
from lakehouse.tables.iceberg import LakehouseCatalog
from tests import upkeep_worker
from tests.upkeep_worker import at

IMPORTED = (_effective, _fix, _ledger, _parse)
"""What commands import when they are called."""

POINTS: dict[str, Callable[[], None]] = {
    "after the first commit": at(LakehouseCatalog, "_swap"),
    "before the second commit": at(LakehouseCatalog, "_swap", before=True, call=2),
}


def run_until(point: str, arguments: list[str], environment: dict[str, str]) -> int | None:
    """Run a command in a process of its own that dies at `point` if it comes there; its exit code."""
    return upkeep_worker.run_until(point, arguments, environment, worker="tests.fix_worker")
