"""Workers: who collects, and whether a worker of this machine is still alive."""

from __future__ import annotations

import os
import secrets
import socket

import psutil

from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import worker


def new_worker_id() -> str:
    """`host:pid:start time:random` of this process; the start time tells two processes with one pid apart."""
    started = int(psutil.Process().create_time())
    return f"{socket.gethostname()}:{os.getpid()}:{started}:{secrets.token_hex(4)}"


def is_dead(worker_id: str) -> bool:
    """Whether a worker is known to be gone: its process ran on this machine and no longer does.

    A worker of another machine is never known to be dead; its leases end by expiry.
    """
    parts = worker_id.rsplit(":", 3)
    if len(parts) != 4 or parts[0] != socket.gethostname() or not (parts[1].isdigit() and parts[2].isdigit()):
        return False
    try:
        process = psutil.Process(int(parts[1]))
        return abs(int(process.create_time()) - int(parts[2])) > 1 or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


def note_worker(ledger: Ledger, worker_id: str) -> None:
    """Record that a worker is at work now."""
    now = ledger.clock.now_utc()
    host, pid, _, _ = worker_id.rsplit(":", 3)
    statement = (
        ledger.insert(worker)
        .values(worker_id=worker_id, host=host, pid=int(pid), started_at=now, seen_at=now)
        .on_conflict_do_update(index_elements=[worker.c.worker_id], set_={"seen_at": now})
    )
    with ledger.write() as connection:
        connection.execute(statement)
