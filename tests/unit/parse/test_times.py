"""Times: Chinese and English forms, their confidence, and what is no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.model.record import TimeConfidence
from lakehouse.parse.times import TimeReader, read_time

ZONE = ZoneInfo("Asia/Shanghai")
FETCHED = datetime(2024, 3, 6, 12, 0, tzinfo=ZONE)
READER = TimeReader(ZONE, FETCHED, "zh")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024年3月5日 08:30", "2024-03-05T08:30:00+08:00"),
        ("2024年03月05日08:30:15", "2024-03-05T08:30:15+08:00"),
        ("2024年3月5日8时30分20秒", "2024-03-05T08:30:20+08:00"),
        ("2024年3月5日 星期二 下午3:05", "2024-03-05T15:05:00+08:00"),
        ("2024年3月5日晚上8点30分", "2024-03-05T20:30:00+08:00"),
        ("二〇二四年三月五日", "2024-03-05T00:00:00+08:00"),
        ("二〇二三年十二月二十一日", "2023-12-21T00:00:00+08:00"),
        ("２０２４年３月５日　０８：３０", "2024-03-05T08:30:00+08:00"),
        ("发布时间：2024-3-5 08:30 来源：晚报", "2024-03-05T08:30:00+08:00"),
        ("2024/03/05 08:30", "2024-03-05T08:30:00+08:00"),
        ("2024.03.05", "2024-03-05T00:00:00+08:00"),
        ("2024 03/05 19:02", "2024-03-05T19:02:00+08:00"),
        ("24-03-05 23:16", "2024-03-05T23:16:00+08:00"),
        ("2024-03-05T08:30:00+08:00", "2024-03-05T08:30:00+08:00"),
        ("2024-03-05T00:30:00Z", "2024-03-05T00:30:00+00:00"),
        ("2024-03-05T00:30:00.123456Z", "2024-03-05T00:30:00+00:00"),
        ("2024-03-05 08:30 -0500", "2024-03-05T08:30:00-05:00"),
        ("Mar 5, 2024 8:30 a.m. EST", "2024-03-05T08:30:00-05:00"),
        ("March 5, 2024 | 3:04 p.m. PST", "2024-03-05T15:04:00-08:00"),
        ("Tuesday, March 5th, 2024 at 11:00 pm", "2024-03-05T23:00:00+08:00"),
        ("8:30 PM ET, Tue March 5, 2024", "2024-03-05T20:30:00-05:00"),
        ("5 March 2024", "2024-03-05T00:00:00+08:00"),
        ("5th of March 2024 at 10pm", "2024-03-05T22:00:00+08:00"),
        ("Tue, 05 Mar 2024 08:30:00 GMT", "2024-03-05T08:30:00+00:00"),
        ("12-Mar-23", "2023-03-12T00:00:00+08:00"),
        ("03/05/2024", "2024-03-05T00:00:00+08:00"),
        ("25/12/2023", "2023-12-25T00:00:00+08:00"),
        ("05.03.2024 14:00", "2024-03-05T14:00:00+08:00"),
        ("2023-12-17 10:00-12:00", "2023-12-17T10:00:00+08:00"),
        ("2024-03-05 24:00", "2024-03-06T00:00:00+08:00"),
        ("20240305", "2024-03-05T00:00:00+08:00"),
        ("20240305083000", "2024-03-05T08:30:00+08:00"),
        ("1709598600", "2024-03-05T08:30:00+08:00"),
        ("1709598600000", "2024-03-05T08:30:00+08:00"),
    ],
)
def test_a_full_date_is_absolute(text: str, expected: str) -> None:
    found = READER.stamp(text)
    assert found is not None
    assert (found.value.isoformat(), found.confidence) == (expected, TimeConfidence.ABSOLUTE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3小时前", "2024-03-06T09:00:00+08:00"),
        ("半小时前", "2024-03-06T11:30:00+08:00"),
        ("5分钟前", "2024-03-06T11:55:00+08:00"),
        ("两天前", "2024-03-04T00:00:00+08:00"),
        ("昨天 12:30", "2024-03-05T12:30:00+08:00"),
        ("前天", "2024-03-04T00:00:00+08:00"),
        ("今天 08:15", "2024-03-06T08:15:00+08:00"),
        ("5 minutes ago", "2024-03-06T11:55:00+08:00"),
        ("an hour ago", "2024-03-06T11:00:00+08:00"),
        ("2 weeks ago", "2024-02-21T00:00:00+08:00"),
        ("Yesterday at 4:05 pm", "2024-03-05T16:05:00+08:00"),
        ("today", "2024-03-06T00:00:00+08:00"),
        ("10-08 12:00", "2023-10-08T12:00:00+08:00"),
        ("3月5日 19:02", "2024-03-05T19:02:00+08:00"),
        ("Dec 3 at 4:05 pm", "2023-12-03T16:05:00+08:00"),
    ],
)
def test_a_time_told_from_the_fetch_is_relative(text: str, expected: str) -> None:
    value, confidence = read_time(text, ZONE, FETCHED)
    assert value is not None
    assert (value.isoformat(), confidence) == (expected, TimeConfidence.RELATIVE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-02-31",
        "2024年2月30日 10:00",
        "2024-13-01",
        "2024-03-05T25:00",
        "1989-06-01",
        "2025-01-01",
        "2024-03-06 18:00",
        "9999999999",
        "0000000000",
        "May 2024",
        "2024-3",
        "version 1.2.3",
        "call 010-6552-1234",
        "192.168.10.24",
        "几天前",
        "三年前端开发经验",
        "今天的天气很好",
        "today's news",
        "99999年前",
    ],
)
def test_what_cannot_be_a_publish_time_is_none(text: str) -> None:
    found = READER.stamp(text)
    assert found is None or found.value.date().isoformat() == "2024-03-05"
    if found is not None:
        assert text == "2024-03-05T25:00"
        assert found.precision == "day"


def test_cst_is_the_time_of_the_language_of_the_page() -> None:
    text = "2024-03-05 08:30:00 CST"
    chinese, english = TimeReader(ZONE, FETCHED, "zh").first(text), TimeReader(ZONE, FETCHED, "en").first(text)
    assert chinese is not None
    assert english is not None
    assert chinese.value.utcoffset() == timedelta(hours=8)
    assert english.value.utcoffset() == timedelta(hours=-6)


def test_relative_times_can_be_left_out() -> None:
    reader = TimeReader(ZONE, FETCHED, relative=False)
    assert reader.first("3小时前") is None
    assert reader.first("2024-03-05") is not None


def test_prose_tells_no_relative_time() -> None:
    assert READER.find("他说，三年前他来到这里，" + "当时的情形与现在完全不同，" * 12) == []


def test_blanks_without_end_cost_nothing() -> None:
    found = READER.first("2024-03-05" + " " * 1900 + "08:30")
    assert found is not None
    assert found.value == datetime(2024, 3, 5, 8, 30, tzinfo=ZONE)


@given(st.text(max_size=300))
def test_no_text_raises_and_nothing_lies_outside_the_bounds(text: str) -> None:
    for found in [*READER.find(text), READER.stamp(text)]:
        if found is not None:
            assert found.value.tzinfo is not None
            assert found.value.year >= 1990
            assert found.value <= FETCHED + timedelta(hours=1)


@given(st.integers(0, (datetime(2024, 3, 6, tzinfo=UTC) - datetime(1990, 1, 2, tzinfo=UTC)).days * 86400))
def test_every_written_time_is_read_back(seconds: int) -> None:
    moment = datetime(1990, 1, 2, tzinfo=UTC).replace(tzinfo=None) + timedelta(seconds=seconds)
    aware = moment.replace(tzinfo=ZONE, fold=0)
    forms = {
        f"{moment:%Y-%m-%d %H:%M:%S}": moment,
        f"{moment.year}年{moment.month}月{moment.day}日 {moment:%H:%M}": moment.replace(second=0),
        f"{moment:%B} {moment.day}, {moment.year} {moment:%I:%M %p}": moment.replace(second=0),
        f"{moment.day} {moment:%b} {moment:%Y %H:%M}": moment.replace(second=0),
    }
    for text, expected in forms.items():
        found = READER.first(text)
        assert found is not None, text
        assert found.value.replace(tzinfo=None) == expected
    stamped = READER.stamp(str(int(aware.timestamp())))
    if aware.timestamp() >= 1_000_000_000:
        assert stamped is not None
        assert stamped.value.astimezone(UTC) == aware.astimezone(UTC)
