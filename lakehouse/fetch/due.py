"""Which tasks of a source are due on a day, and as which run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from croniter import croniter

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError
from lakehouse.fetch.policy import blank_url
from lakehouse.ledger.tasks import NewTask
from lakehouse.model.fetch import FetchKind
from lakehouse.model.urls import url_fp
from lakehouse.specs.source import SourceSpec, SourceStatus, TaskSpec

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Due:
    """First pages of the due runs; `reason` says why there are none."""

    tasks: tuple[NewTask, ...] = ()
    reason: str | None = None


def find_due(
    source: SourceSpec,
    dt: date,
    *,
    clock: Clock,
    last_successes: Mapping[str, datetime],
    open_names: Collection[str] = (),
    force: bool = True,
) -> Due:
    """What is due on business day `dt`.

    A batch task is due by its newest scheduled time of the day that has passed; with `force` its first one of today is
    due from the start of the day. A stream task is due when its last success is older than its interval and none of
    its work is left open. A past day is due only for a source addressed by date. Raises ConfigError for a future day.
    """
    today = clock.today()
    if dt > today:
        raise ConfigError(f"day {dt} lies in the future; today is {today} in {clock.zone.key}")
    if source.status is SourceStatus.DISABLED:
        return Due(reason=f"source {source.source} is disabled; set status: enabled to collect it")
    if dt < today and not source.by_date:
        return Due(reason=f"source {source.source} is not addressed by date: replay instead")
    tasks = []
    for task in source.tasks:
        if task.cron is not None:
            key = _batch_run(task.cron, dt, clock, force)
        elif task.name in open_names:
            key = None
        else:
            key = _stream_run(task, dt, clock, last_successes.get(task.name))
        if key is not None:
            tasks.append(first_page(source, task, dt, key))
    return Due(tuple(tasks), None if tasks else f"no task of source {source.source} is due on {dt} at this time")


def first_page(source: SourceSpec, task: TaskSpec, dt: date, run_key: str) -> NewTask:
    """The task that starts a run: a list page, or a detail page where the task has no list rules."""
    number = task.paging.first if task.paging is not None else 1
    url = fill_url(task.url, dt, number)
    return NewTask(
        source=source.source,
        dt=dt,
        name=task.name,
        run_key=run_key,
        kind=FetchKind.LIST if task.list is not None else FetchKind.DETAIL,
        url=url,
        url_fp=url_fp(blank_url(url, source.secret_params)),
        page_no=number,
        priority=source.priority * 10,
    )


def fill_url(url: str, dt: date, page: int) -> str:
    """A task's URL with `{dt}`, `{yyyy}`, `{mm}`, `{dd}` and `{page}` filled in; other braces stay."""
    values = {"dt": dt.isoformat(), "yyyy": f"{dt:%Y}", "mm": f"{dt:%m}", "dd": f"{dt:%d}", "page": str(page)}
    for name, value in values.items():
        url = url.replace("{" + name + "}", value)
    return url


def seconds_of(duration: str) -> int:
    """Seconds of a declared duration such as `10m`."""
    return int(duration[:-1]) * UNITS[duration[-1]]


def _batch_run(cron: str, dt: date, clock: Clock, force: bool) -> str | None:
    start = clock.start_of(dt).astimezone(clock.zone)
    end = clock.start_of(dt + timedelta(days=1))
    times = croniter(cron, start - timedelta(seconds=1))
    slot: datetime = times.get_next(datetime)
    if slot >= end:
        return None
    now = clock.now_utc()
    if slot > now:
        return slot.isoformat() if force else None
    while (later := times.get_next(datetime)) < end and later <= now:
        slot = later
    return slot.isoformat()


def _stream_run(task: TaskSpec, dt: date, clock: Clock, last_success: datetime | None) -> str | None:
    if dt < clock.today():
        return "day"
    now = clock.now_utc()
    interval = seconds_of(task.interval or "1d")
    if last_success is not None and now - last_success < timedelta(seconds=interval):
        return None
    slot = int(now.timestamp()) // interval * interval
    return datetime.fromtimestamp(slot, clock.zone).isoformat()
