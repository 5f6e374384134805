from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError
from lakehouse.fetch.due import Due, fill_url, find_due
from lakehouse.model.fetch import FetchKind
from lakehouse.specs.source import SourceSpec

TODAY = date(2026, 3, 2)
MakeSource = Callable[..., SourceSpec]


def at(hour: int, minute: int = 0) -> Clock:
    """A clock at this time of TODAY in Shanghai."""
    instant = datetime(2026, 3, 1, 16, tzinfo=UTC) + timedelta(hours=hour, minutes=minute)
    return Clock.in_zone("Asia/Shanghai", lambda: instant)


def task(**changes: Any) -> dict[str, Any]:
    return {"name": "t", "url": "http://news.test/", "list": {"links": "a"}, **changes}


def due(source: SourceSpec, clock: Clock, dt: date = TODAY, force: bool = False, **more: Any) -> Due:
    return find_due(source, dt, clock=clock, last_successes=more.pop("last", {}), force=force, **more)


def keys(found: Due) -> list[str]:
    return [one.run_key for one in found.tasks]


def test_a_batch_task_is_due_once_its_time_has_passed(make_source: MakeSource) -> None:
    source = make_source(tasks=[task(cron="30 6 * * *")])
    early = due(source, at(6, 29))
    assert early.tasks == ()
    assert "no task of source news is due" in (early.reason or "")
    assert keys(due(source, at(6, 30))) == ["2026-03-02T06:30:00+08:00"]
    assert keys(due(source, at(23))) == ["2026-03-02T06:30:00+08:00"]


def test_by_hand_the_hour_does_not_matter(make_source: MakeSource) -> None:
    source = make_source(tasks=[task(cron="30 6 * * *")])
    runs = [keys(due(source, at(hour), force=True)) for hour in (0, 6, 7, 23)]
    assert runs == [["2026-03-02T06:30:00+08:00"]] * 4


def test_of_missed_times_only_the_newest_is_due(make_source: MakeSource) -> None:
    source = make_source(tasks=[task(cron="0 */6 * * *")])
    assert keys(due(source, at(13))) == ["2026-03-02T12:00:00+08:00"]
    assert keys(due(source, at(0))) == ["2026-03-02T00:00:00+08:00"]
    late = make_source(tasks=[task(cron="0 8,20 * * *")])
    assert keys(due(late, at(1), force=True)) == ["2026-03-02T08:00:00+08:00"]


def test_a_weekly_task_is_due_on_its_day_only(make_source: MakeSource) -> None:
    assert TODAY.isoweekday() == 1
    assert len(due(make_source(tasks=[task(cron="0 6 * * 1")]), at(7)).tasks) == 1
    assert due(make_source(tasks=[task(cron="0 6 * * 2")]), at(7), force=True).tasks == ()


def test_a_past_day_is_due_only_where_the_address_holds_the_date(make_source: MakeSource) -> None:
    past = date(2025, 12, 31)
    found = due(make_source(tasks=[task(cron="0 6 * * *")]), at(7), past, force=True)
    assert found.tasks == ()
    assert "not addressed by date: replay instead" in (found.reason or "")
    dated = make_source(by_date=True, tasks=[task(cron="0 6,18 * * *", url="http://news.test/{yyyy}-{mm}/{dd}/{page}")])
    (one,) = due(dated, at(7), past).tasks
    assert one.url == "http://news.test/2025-12/31/1"
    assert (one.dt, one.run_key, one.kind) == (past, "2025-12-31T18:00:00+08:00", FetchKind.LIST)
    stream = make_source(by_date=True, tasks=[task(interval="10m", url="http://news.test/{dt}")])
    assert keys(due(stream, at(7), past)) == ["day"]


def test_tomorrow_is_a_mistake(make_source: MakeSource) -> None:
    with pytest.raises(ConfigError, match="future"):
        due(make_source(), at(7), TODAY + timedelta(days=1))
    assert due(make_source(), at(0), TODAY, force=True).tasks != ()


def test_a_disabled_source_has_nothing_due(make_source: MakeSource) -> None:
    found = due(make_source(status="disabled"), at(12), force=True)
    assert found.tasks == ()
    assert "disabled" in (found.reason or "")


def test_a_stream_is_due_when_its_last_success_is_old(make_source: MakeSource) -> None:
    source = make_source(tasks=[task(interval="10m")])
    clock = at(12, 5)
    assert keys(due(source, clock)) == ["2026-03-02T12:00:00+08:00"]
    assert due(source, clock, last={"t": clock.now_utc() - timedelta(minutes=9)}).tasks == ()
    assert len(due(source, clock, last={"t": clock.now_utc() - timedelta(minutes=10)}).tasks) == 1
    assert due(source, clock, open_names={"t"}).tasks == (), "work that is left goes on before more is asked for"


def test_a_task_without_list_rules_is_one_page(make_source: MakeSource) -> None:
    source = make_source(
        secret_params=["key"],
        tasks=[{"name": "t", "cron": "0 0 * * *", "url": "http://news.test/?key=abc"}],
    )
    (one,) = due(source, at(7)).tasks
    assert (one.kind, one.url) == (FetchKind.DETAIL, "http://news.test/?key=abc")
    other = make_source(
        secret_params=["key"], tasks=[{"name": "t", "cron": "0 0 * * *", "url": "http://news.test/?key=x"}]
    )
    assert due(other, at(7)).tasks[0].url_fp == one.url_fp, "a secret that changes makes no other page"


def test_other_braces_stay() -> None:
    assert fill_url("http://a/{x}?p={page}&q={dt}{", TODAY, 3) == "http://a/{x}?p=3&q=2026-03-02{"
