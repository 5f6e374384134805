"""The collector: works one day of one source until nothing is left to do, and survives being killed at any moment.

Each exchange is spooled together with how its task goes on before the ledger hears of it. Whoever comes next settles
what a dead worker spooled, then frees what it held, then uploads: so no exchange is lost and none is counted twice.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import FrameType
from typing import Any

from lakehouse.errors import UnavailableError
from lakehouse.fetch.browser import BrowserClient
from lakehouse.fetch.client import FetchClient
from lakehouse.fetch.due import find_due
from lakehouse.fetch.gate import Gate
from lakehouse.fetch.http import HttpClient
from lakehouse.fetch.report import CollectorDeps, CollectReport, Progress
from lakehouse.fetch.step import Step, check_rules
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.tasks import ENDED, HeldTask, NewTask, Settlement
from lakehouse.ledger.workers import note_worker
from lakehouse.model.fetch import EndedTask
from lakehouse.snapshots.batches import MAX_BYTES, MAX_FETCHES, Books, upload_pending
from lakehouse.specs.source import Fetcher, SourceSpec

LEASE_MARGIN_S = 120.0
NAP_S = 1.0


def collect_day(
    source: SourceSpec, dt: date, *, deps: CollectorDeps, progress: Progress | None = None, force: bool = True
) -> CollectReport:
    """Collect what is due for one day: enqueue due tasks, work the queue until it is empty, spool, upload.

    With `force` a batch task of today is due from the start of the day, else once its scheduled time has passed. A day
    whose tasks have all ended does nothing, but for runs whose list could not be read: these are made again. Raises
    UnavailableError when the ledger or the store does not answer, and ConfigError for a day in the future or rules that
    cannot be used; running again goes on where it stopped.
    """
    check_rules(source)
    day = CollectDay(source, dt, deps, progress)
    with stopped_by_sigterm():
        return day.run(force)


class CollectDay:
    """One worker on one day of one source."""

    def __init__(self, source: SourceSpec, dt: date, deps: CollectorDeps, progress: Progress | None) -> None:
        self.source = source
        self.dt = dt
        self.deps = deps
        self.queue = Queue(deps.ledger)
        self.report = CollectReport(source.source, dt, deps.worker_id)
        self._progress = progress
        self._lease_s = source.limits.total_timeout + LEASE_MARGIN_S
        self._held: HeldTask | None = None
        self._books = Books(
            settle=lambda after: self.queue.settle(Settlement.from_json(after)),
            ended=self._ended,
            register=BatchIndex(deps.ledger).register,
        )

    def run(self, force: bool) -> CollectReport:
        """Enqueue, work, upload; held tasks are given back however this ends."""
        queue, report, day = self.queue, self.report, (self.source.source, self.dt)
        due = find_due(
            self.source,
            self.dt,
            clock=self.deps.clock,
            last_successes=queue.last_successes(self.source.source),
            open_names=queue.open_names(*day),
            force=force,
        )
        note_worker(self.deps.ledger, self.deps.worker_id)
        report.due = tuple(task.name for task in due.tasks)
        report.enqueued = queue.enqueue(due.tasks)
        report.enqueued += queue.enqueue(self._runs_again(due.tasks))
        report.torn = self.deps.spool.set_aside_torn(*day)
        try:
            self._upload()
            if queue.next_due(*day) is None:
                report.reason = due.reason or "all due tasks of the day have ended"
            else:
                self._work()
                self._upload()
        finally:
            self._give_back()
        counts = queue.counts(*day)
        report.waiting = sum(count for state, count in counts.items() if state not in ENDED)
        report.ended = bool(counts) and report.waiting == 0
        return report

    def _runs_again(self, due: Sequence[NewTask]) -> list[NewTask]:
        """A further run of each due task whose list could not be read, once nothing of it is left open."""
        day = (self.source.source, self.dt)
        failed, still_open = self.queue.failed_runs(*day), self.queue.open_names(*day)
        return [
            replace(task, run_key=f"{task.run_key}+{failed[task.name]}")
            for task in due
            if task.name in failed and task.name not in still_open
        ]

    def _work(self) -> None:
        with self._clients() as client:
            step = Step(self.source, self.deps, client, self.report)
            fetches = size = 0
            while (task := self._next_task()) is not None:
                self._held = task
                size += step.work(task).size
                fetches += 1
                self._held = None
                if self._progress is not None:
                    self._progress(self.report)
                if fetches >= MAX_FETCHES or size >= MAX_BYTES:
                    self._upload()
                    fetches = size = 0

    @contextlib.contextmanager
    def _clients(self) -> Iterator[FetchClient]:
        gate = Gate(self.source, self.deps, self._renew)
        with contextlib.closing(gate), contextlib.closing(self._client(gate)) as client:
            yield client

    def _client(self, gate: Gate) -> FetchClient:
        size, before_hop = self.deps.max_body_bytes, gate.before_hop
        if self.source.fetcher is Fetcher.BROWSER:
            path = self.deps.browser_path
            return BrowserClient(self.source, max_body_bytes=size, before_hop=before_hop, path=path)
        return HttpClient(self.source, max_body_bytes=size, before_hop=before_hop)

    def _next_task(self) -> HeldTask | None:
        """A task to work on, waiting for one that is due soon; None when all ended or the rest is due much later."""
        day = (self.source.source, self.dt)
        while True:
            self._recover()
            tasks = self.queue.lease(*day, self.deps.worker_id, limit=1, seconds=self._lease_s)
            if tasks:
                return tasks[0]
            due_at = self.queue.next_due(*day)
            if due_at is None:
                return None
            wait = (due_at - self.deps.clock.now_utc()).total_seconds()
            if wait > self.deps.patience_s:
                return None
            time.sleep(min(max(wait, 0.01), NAP_S))

    def _recover(self) -> None:
        """Free what dead workers held, after settling what they had already spooled."""
        lost = self.queue.lost_leases(self.source.source, self.dt)
        if lost:
            self._settle_spooled()
            self.queue.release(lost, "its worker is gone")

    def _settle_spooled(self) -> None:
        for record in self.deps.spool.pending(self.source.source, self.dt):
            self._books.settle(record.after)

    def _give_back(self) -> None:
        """Free what this worker still holds; a ledger that is gone frees it by itself, by expiry or by a dead pid."""
        with contextlib.suppress(UnavailableError):
            held = self.queue.held(self.source.source, self.dt, self.deps.worker_id)
            if held:
                self._settle_spooled()
                self.queue.release(held, "its worker stopped")

    def _renew(self) -> None:
        if self._held is not None:
            self.queue.renew(self._held.task_id, self.deps.worker_id, self._lease_s)

    def _upload(self) -> None:
        self.report.batches += upload_pending(
            self.deps.spool, self.deps.store, self._books, self.source.source, self.dt
        )

    def _ended(self, afters: Sequence[Mapping[str, Any]]) -> list[EndedTask]:
        """The tasks that these attempts ended: a task goes into the batch of the fetch that ended it, and no other."""
        ends = {(after["task_id"], after["worker_id"], after["attempt"]) for after in afters}
        tasks = self.queue.ended({task_id for task_id, _, _ in ends})
        return [task for task in tasks if (task.task_id, task.worker_id, task.attempts) in ends]


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that leases are given back; leaves handlers that somebody else set alone."""

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
