"""A collector in a process of its own that can be made to stop for ever at a given point, so that it can be killed.

`python -m tests.collect_worker '{"ledger": …, "home": …, "source": {…}, "stop": "settle:3"}'`: the point is the name of
a step and the number of its call. It prints `stopped` when it is there, and the report as JSON when it ends.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakehouse.clock import Clock
from lakehouse.fetch.collector import collect_day
from lakehouse.fetch.report import CollectorDeps
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.workers import new_worker_id
from lakehouse.logs import configure_logs
from lakehouse.snapshots import batches
from lakehouse.snapshots.objects import ObjectStore
from lakehouse.snapshots.spool import Spool
from lakehouse.snapshots.stores import DirectoryStore, MinioStore, open_minio
from lakehouse.specs.source import SourceSpec

STEPS: dict[str, tuple[Any, str]] = {
    "spool": (Spool, "write"),
    "settle": (Queue, "settle"),
    "plan": (Spool, "plan"),
    "body": (batches, "put_packed_body"),
    "register": (BatchIndex, "register"),
    "clear": (Spool, "clear"),
}


def open_deps(order: dict[str, Any]) -> CollectorDeps:
    """What a collector works with, as `order` says."""
    clock = Clock.in_zone("Asia/Shanghai")
    store: ObjectStore = DirectoryStore(Path(order["home"]) / "objects")
    if "s3" in order:
        store = MinioStore(open_minio(**order["s3"]["client"]), order["s3"]["bucket"])
    ledger = Ledger.open(order["ledger"], clock)
    return CollectorDeps(clock, ledger, store, Spool(Path(order["home"]) / "spool"), new_worker_id())


def stop_at(point: str) -> None:
    """Make the n-th call of a step stop before it does anything; `after-` lets that call be made first."""
    name, _, number = point.partition(":")
    owner, attribute = STEPS[name.removeprefix("after-")]
    original: Callable[..., Any] = getattr(owner, attribute)
    calls = 0

    def stopping(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        done = original(*args, **kwargs) if calls < int(number) or name.startswith("after-") else None
        if calls >= int(number):
            sys.stdout.write("stopped\n")
            sys.stdout.flush()
            time.sleep(600)
        return done

    setattr(owner, attribute, stopping)


def main() -> None:
    """Collect today's due tasks of the ordered source."""
    order = json.loads(sys.argv[1])
    if order.get("stop"):
        stop_at(order["stop"])
    deps = open_deps(order)
    configure_logs(deps.clock, level="WARNING")
    report = collect_day(SourceSpec.model_validate(order["source"]), deps.clock.today(), deps=deps)
    sys.stdout.write(json.dumps(asdict(report), default=str) + "\n")


if __name__ == "__main__":
    main()
