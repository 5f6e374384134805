"""One attempt of one task: exchange, judgement, what a list gave; spooled before the ledger knows."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from lakehouse.errors import ConfigError, FetchError, FetchRefused
from lakehouse.fetch.client import FetchClient
from lakehouse.fetch.exchange import Attempt, Observed, observe_failure, observe_response
from lakehouse.fetch.lists import Link, ListPage, read_list
from lakehouse.fetch.paging import next_page
from lakehouse.fetch.policy import Verdict, blank_url, judge, slot_name
from lakehouse.fetch.report import CollectorDeps, CollectReport
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.slots import hold_back
from lakehouse.ledger.tasks import ENDED, HeldTask, NewTask, Settlement, TaskState
from lakehouse.logs import get_log
from lakehouse.model.fetch import Entry, Fetch, FetchKind, Request
from lakehouse.model.urls import url_fp
from lakehouse.snapshots.spool import SpoolRecord
from lakehouse.specs.source import ListRules, SourceSpec, TaskSpec

DETAIL_AFTER_LIST = 5
MAX_DETAIL = 500


class Step:
    """Works single tasks of one source."""

    def __init__(self, source: SourceSpec, deps: CollectorDeps, client: FetchClient, report: CollectReport) -> None:
        self._source = source
        self._deps = deps
        self._client = client
        self._report = report
        self._queue = Queue(deps.ledger)
        self._tasks = {task.name: task for task in source.tasks}

    def work(self, task: HeldTask) -> SpoolRecord:
        """Make one attempt of a held task; its exchange is on disk and its task settled when this returns."""
        observed, verdict, detail = self._exchange(task)
        page, spec = None, self._tasks.get(task.ask.name)
        if task.ask.kind is FetchKind.LIST and observed.worked:
            page = self._read(task, spec, observed)
        now = observed.fetch.collect_time
        links = () if page is None else page.links
        end = Settlement(
            task_id=task.task_id,
            worker_id=self._deps.worker_id,
            attempt=observed.fetch.attempt,
            state=verdict.state,
            reason=f"{verdict.reason}: {detail}" if detail else verdict.reason,
            not_before=now + timedelta(seconds=verdict.wait_s) if verdict.state is TaskState.PENDING else None,
            stored_url=observed.fetch.url,
            children=() if page is None or spec is None else self._children(task, spec, page),
        )
        keeps_body = task.ask.kind is not FetchKind.LIST or not links
        record = self._deps.spool.write(
            observed.fetch,
            observed.body if keeps_body else None,
            observed.rendered if keeps_body else None,
            entries=[self._entry(task, link, number, now) for number, link in enumerate(links, start=1)],
            after=end.as_json(),
        )
        if not self._queue.settle(end):
            get_log(source=self._source.source, task=task.task_id).warning("task was settled by another worker")
        if verdict.hold_s > 0:
            hold_back(self._deps.ledger, slot_name(task.ask.url), now + timedelta(seconds=verdict.hold_s))
        self._count(observed.fetch, end, len(links))
        return record

    def _exchange(self, task: HeldTask) -> tuple[Observed, Verdict, str | None]:
        attempt = Attempt(self._source, task, self._deps.worker_id, self._client.name)
        spec = self._tasks.get(task.ask.name)
        rules = spec.list if spec is not None and task.ask.kind is FetchKind.LIST else None
        request = Request(task.ask.url, task.ask.kind, wait_for=None if rules is None else rules.wait_for)
        started = time.monotonic()
        may_retry, detail = True, None
        try:
            response = self._client.fetch(request, self._source.limits)
            observed = observe_response(attempt, response, self._now())
        except FetchError as error:
            may_retry, detail = not isinstance(error, FetchRefused), str(error).replace("\x00", "")[:MAX_DETAIL]
            elapsed_ms = round((time.monotonic() - started) * 1000)
            observed = observe_failure(attempt, error, elapsed_ms, self._now())
        return observed, judge(observed.fetch, self._source.limits, may_retry=may_retry, now=self._now()), detail

    def _read(self, task: HeldTask, spec: TaskSpec | None, observed: Observed) -> ListPage:
        if spec is None or spec.list is None:
            raise ConfigError(
                f"source {self._source.source} has work left of task {task.ask.name} on {task.ask.dt}, which is no "
                "longer declared with list rules; declare it again until that day has ended"
            )
        charset = "utf-8" if observed.rendered is not None else observed.fetch.charset or "utf-8"
        next_selector = spec.paging.next if spec.paging is not None else None
        return read_list(observed.text, observed.url, charset, spec.list, next_selector)

    def _children(self, task: HeldTask, spec: TaskSpec, page: ListPage) -> tuple[NewTask, ...]:
        ask = task.ask
        links = [(link, self._fp(link)) for link in page.links]
        known: set[str] = set()
        if not spec.take_known:
            known = self._queue.known_details(ask.source, ask.dt, (ask.name, ask.run_key), {fp for _, fp in links})
        self._report.known += sum(fp in known for _, fp in links)
        details = [
            NewTask(
                source=ask.source,
                dt=ask.dt,
                name=ask.name,
                run_key=ask.run_key,
                kind=FetchKind.DETAIL,
                url=link.url,
                url_fp=fp,
                parent_task_id=task.task_id,
                page_no=ask.page_no,
                entry=link.entry,
                priority=self._source.priority * 10 + DETAIL_AFTER_LIST,
            )
            for link, fp in links
            if fp not in known
        ]
        following = next_page(self._source, spec, task, page)
        return (*details, *([following] if following is not None else []))

    def _entry(self, task: HeldTask, link: Link, position: int, now: datetime) -> Entry:
        return Entry(
            source=task.ask.source,
            dt=task.ask.dt,
            task_id=task.task_id,
            list_url_fp=task.ask.url_fp,
            page_no=task.ask.page_no,
            position=position,
            url=blank_url(link.url, self._source.secret_params),
            url_fp=self._fp(link),
            entry=link.entry,
            collect_time=now,
        )

    def _fp(self, link: Link) -> str:
        return url_fp(blank_url(link.url, self._source.secret_params))

    def _count(self, fetch: Fetch, end: Settlement, entries: int) -> None:
        report = self._report
        report.limited += fetch.limited is not None
        report.failed += fetch.limited is None and fetch.error is not None
        report.fetched += fetch.limited is None and fetch.error is None
        report.retried += end.state not in ENDED
        report.entries += entries

    def _now(self) -> datetime:
        return self._deps.clock.now_utc()


def check_rules(source: SourceSpec) -> None:
    """Raise ConfigError for list rules of `source` that cannot be used, before anything is asked for."""
    for task in source.tasks:
        selector = task.paging.next if task.paging is not None else None
        if task.list is not None:
            read_list("<html></html>", source.entry_url, "utf-8", task.list, selector)
            _check_fields(task.list, source.entry_url)


def _check_fields(rules: ListRules, url: str) -> None:
    for selector in rules.fields.values():
        read_list("<html></html>", url, "utf-8", ListRules(links=selector))
