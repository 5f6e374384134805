"""Times told from the fetch: `3小时前`, `昨天 12:30`, `5 minutes ago`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

CLOCK = (
    r"(?:[,，]?\s*(?:at\s+)?(?P<hour>[01]?\d|2[0-3])\s?[:：]\s?(?P<minute>[0-5]\d)(?:[:：](?P<second>[0-5]\d))?"
    r"\s?(?P<half>[ap]\.?m\b\.?)?)?"
)
AGO_ZH = re.compile(
    r"(?P<n>\d{1,4}|[一二两三四五六七八九十半几]|十[一二三])\s?"
    r"(?P<unit>秒钟?|分钟?|个?小时|天|日|周|个?星期|个?月|年)\s?(?:之|以)?前(?!后|提|所|端|方|线|锋)"
)
DAY_ZH = re.compile(rf"(?P<day>今天|今日|昨天|昨日|前天|前日|大前天)(?![的是起后内有将已会在开举发]){CLOCK}")
NOW_ZH = re.compile(r"^\s*(?:刚刚|刚才)\s*(?:发布|更新)?\s*$")
AGO_EN = re.compile(
    r"\b(?P<n>\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten)\s?"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|mos?|months?|y|yrs?|years?)\.?\s+ago\b",
    re.IGNORECASE,
)
DAY_EN = re.compile(rf"\b(?P<day>today|yesterday)\b(?!['’]s){CLOCK}", re.IGNORECASE)
NOW_EN = re.compile(r"^\s*(?:just now|moments? ago)\s*$", re.IGNORECASE)
NUMBERS = {
    **{char: number for number, char in enumerate("一二三四五六七八九十", start=1)},
    "两": 2, "十一": 11, "十二": 12, "十三": 13, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
DAYS = {"今天": 0, "今日": 0, "昨天": 1, "昨日": 1, "前天": 2, "前日": 2, "大前天": 3, "today": 0, "yesterday": 1}
STEPS = (
    (re.compile("秒|s"), timedelta(seconds=1)),
    (re.compile("分|min|m$"), timedelta(minutes=1)),
    (re.compile("个?小时|h"), timedelta(hours=1)),
    (re.compile("天|日|d"), timedelta(days=1)),
    (re.compile("周|个?星期|w"), timedelta(days=7)),
    (re.compile("个?月|mo"), timedelta(days=30)),
    (re.compile("年|y"), timedelta(days=365)),
)
MAX_CHARS = 120

Relative = tuple[datetime, str, str, int, int]


def relative_times(text: str, now: datetime) -> Iterator[Relative]:
    """(value, precision, shown text, start, end) of each relative time in a short text, told from `now` (aware).

    Longer texts are prose, where such words tell of other things: they give nothing.
    """
    if len(text) > MAX_CHARS:
        return
    for pattern in (AGO_ZH, AGO_EN):
        for match in pattern.finditer(text):
            found = _ago(match["n"].lower(), match["unit"].lower(), now)
            if found is not None:
                yield (*found, match[0].strip(), match.start(), match.end())
    for pattern in (DAY_ZH, DAY_EN):
        for match in pattern.finditer(text):
            yield (*_day(match, now), match[0].strip(), match.start(), match.end())
    for pattern in (NOW_ZH, NOW_EN):
        for match in pattern.finditer(text):
            yield now.replace(second=0, microsecond=0), "minute", match[0].strip(), match.start(), match.end()


def _ago(number: str, unit: str, now: datetime) -> tuple[datetime, str] | None:
    step = _step(unit)
    if number == "半":
        count = 0.5
    elif number == "几":
        return None
    else:
        count = float(NUMBERS.get(number) or number)
    try:
        value = now - step * count
    except OverflowError:
        return None
    if step >= timedelta(days=1):
        return value.replace(hour=0, minute=0, second=0, microsecond=0), "day"
    return value.replace(second=0, microsecond=0), "minute"


def _step(unit: str) -> timedelta:
    return next(step for pattern, step in STEPS if pattern.match(unit))


def _day(match: re.Match[str], now: datetime) -> tuple[datetime, str]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS[match["day"].lower()])
    if match["hour"] is None:
        return midnight, "day"
    hour = int(match["hour"])
    half = (match["half"] or "").lower()[:1]
    hour = hour + 12 if half == "p" and hour < 12 else 0 if half == "a" and hour == 12 else hour
    value = midnight.replace(hour=hour, minute=int(match["minute"]), second=int(match["second"] or 0))
    return value, "second" if match["second"] else "minute"
