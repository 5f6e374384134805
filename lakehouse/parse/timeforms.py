"""The written forms of absolute dates and times, as patterns, and what they matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from lakehouse.parse.zones import ZONE

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
            ("july", "jul"), ("august", "aug"), ("september", "sep", "sept"), ("october", "oct"), ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}  # fmt: skip
MONTH = "(?P<name>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
HOUR = r"(?P<hour>[01]?\d|2[0-4])"
HALF = r"(?P<half>a\.?\s?m\b\.?|p\.?\s?m\b\.?)"
HALF_ZH = r"(?P<half_zh>上午|下午|晚上|晚间|傍晚|早上|早晨|清晨|凌晨|中午|午间)"
MINUTES = r"(?:\s?[:：时點点]\s?(?P<minute>[0-5]\d)(?:\s?[:：分]\s?(?P<second>[0-5]\d)(?:[.,]\d{1,9})?)?[分秒]?)"
WEEKDAY = (
    r"(?:\s*[(（]?\s*(?:星期|周|週)[一二三四五六日天]\s*[)）]?"
    r"|\s*,?\s*\(?(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?\)?)?"
)
CLOCK = (
    rf"(?:{HALF_ZH}\s*)?{HOUR}(?:{MINUTES}\s?{HALF}?|\s?{HALF.replace('half', 'half2')}|\s?[时點点](?!\d))"
    rf"(?:\s?\(?{ZONE}\)?)?"
)
JOIN = rf"{WEEKDAY}(?:\s*[T,，·•|@/–—-]?\s*(?:at|around|on)?\s*)"
AFTER = rf"(?:{JOIN}{CLOCK})?"
YMD = re.compile(
    r"(?<![\d.])(?P<year>(?:19|20)\d{2})(?:\s?(?P<sep>[-/.])\s?|\s?年\s?|\s(?=\d{1,2}[-/]))"
    r"(?P<month>0?[1-9]|1[0-2])(?:\s?[-/.]\s?|\s?月\s?)(?P<day>0?[1-9]|[12]\d|3[01])(?!\d)(?:\s?[日号號])?" + AFTER,
    re.IGNORECASE,
)
NAMED = re.compile(
    rf"(?<![A-Za-z]){MONTH}\s{{0,3}}(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\d),?(?:\s+|\s*-\s*|\s*/\s*)"
    rf"(?P<year>(?:19|20)\d{{2}})(?!\d)" + AFTER,
    re.IGNORECASE,
)
DAY_FIRST = re.compile(
    rf"(?<![\d:])(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?:\s+(?:of\s+)?|-|/|\.\s?){MONTH},?(?:\s*|-|/)"
    rf"(?P<year>(?:19|20)\d{{2}}|(?<=-)\d{{2}})(?!\d)" + AFTER,
    re.IGNORECASE,
)
NUMERIC = re.compile(
    r"(?<![\d/.-])(?P<first>\d{1,2})(?P<sep>[/.-])(?P<other>\d{1,2})(?P=sep)(?P<year>(?:19|20)\d{2})(?!\d)" + AFTER,
    re.IGNORECASE,
)
SHORT_YEAR = re.compile(
    r"(?<![\d/.-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<c>\d{2})(?![\d/.-])" + AFTER, re.IGNORECASE
)
NO_YEAR = re.compile(
    r"(?<![\d/.年-])(?P<month>0?[1-9]|1[0-2])(?:\s?月\s?(?P<day>0?[1-9]|[12]\d|3[01])\s?[日号](?!电|讯)"
    rf"(?:{JOIN}{CLOCK})?"
    rf"|[-/](?P<day2>0[1-9]|[12]\d|3[01])\s+(?=\d{{1,2}}[:：]){CLOCK.replace('(?P<', '(?P<z_')})",
    re.IGNORECASE,
)
NO_YEAR_NAMED = re.compile(
    rf"(?<![A-Za-z]){MONTH}\s(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\d|,?\s*(?:19|20)\d\d)" + AFTER,
    re.IGNORECASE,
)
CLOCK_FIRST = re.compile(
    CLOCK + r"(?:,|\s|\bon\b|\||-|–|—|·|•)*(?:mon|tue|wed|thu|fri|sat|sun)?[a-z]{0,6}[,.]?\s*$", re.IGNORECASE
)
COMPACT = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])"
    r"(?:T?(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?)?(?:Z|\.\d+Z)?(?!\d)"
)
HAN_DIGITS = {char: number for number, char in enumerate("〇一二三四五六七八九")} | {"○": 0, "零": 0, "О": 0}
HAN_DATE = re.compile(r"([〇○零一二三四五六七八九]{4})年([一二三四五六七八九十]{1,3})月([一二三四五六七八九十]{1,3})日")
WORTH_A_LOOK = re.compile(
    r"\d[\s]?[-/.:：年月日]|(?:19|20)\d\d|[前今昨]|ago\b|刚[刚才]|yesterday|today|just now|年", re.IGNORECASE
)
FULL_WIDTH = {
    **{0xFF10 + n: 0x30 + n for n in range(10)},
    0xFF1A: 0x3A,
    0xFF0D: 0x2D,
    0xFF0F: 0x2F,
    0xA0: 0x20,
    0x3000: 0x20,
}


@dataclass(frozen=True, slots=True)
class Written:
    """One date as it was written: the groups of its pattern, its numbers, its time of day, its place in the text."""

    parts: dict[str, str]
    year: int | None
    month: int
    day: int
    clock: timedelta | None
    text: str
    start: int
    end: int

    @property
    def precision(self) -> str:
        """`day`, `minute` or `second`."""
        return "day" if self.clock is None else "second" if "second" in self.parts else "minute"


def written_dates(text: str) -> Iterator[Written]:
    """All dates in a plain text, also overlapping ones, in no order."""
    for match, given in _matches(text):
        yield _written(text, match, given)


def compact_date(text: str) -> Written | None:
    """A date of digits alone, such as 20240305 or 20240305083000."""
    match = COMPACT.search(text)
    return _written(text, match, {}) if match else None


def _written(text: str, match: re.Match[str], given: dict[str, int]) -> Written:
    parts = {name.removeprefix("z_"): part for name, part in match.groupdict().items() if part is not None}
    start = match.start()
    if "hour" not in parts and "name" in parts:
        before = CLOCK_FIRST.search(text, max(0, start - 40), start)
        if before is not None:
            parts |= {name: part for name, part in before.groupdict().items() if part is not None}
            start = before.start()
    year = given.get("year") or int(parts.get("year", 0)) or None
    month = given.get("month") or int(parts["month"])
    day = given.get("day") or int(parts.get("day") or parts["day2"])
    full = year + 2000 if year is not None and year < 100 else year
    return Written(parts, full, month, day, _clock(parts), text[start : match.end()].strip(), start, match.end())


def plain_text(text: str) -> str:
    """A text as the patterns want it: digits of one width, Han numbers as digits, single blanks."""
    # Blanks are made single: the patterns allow several in many places, and a thousand would take for ever.
    return HAN_DATE.sub(_han_date, " ".join(text.translate(FULL_WIDTH).split()))


def _han_date(match: re.Match[str]) -> str:
    year = "".join(str(HAN_DIGITS[char]) for char in match[1])
    return f"{year}年{_han_number(match[2])}月{_han_number(match[3])}日"


def _han_number(text: str) -> int:
    tens, ten, ones = text.partition("十")
    if not ten:
        return HAN_DIGITS[tens[-1]]
    return (HAN_DIGITS[tens[-1]] if tens else 1) * 10 + (HAN_DIGITS[ones[0]] if ones and ones[0] in HAN_DIGITS else 0)


def _matches(text: str) -> Iterator[tuple[re.Match[str], dict[str, int]]]:
    """Matches of all absolute forms with the numbers that are not groups of the pattern."""
    for match in YMD.finditer(text):
        yield match, {}
    for pattern in (NAMED, DAY_FIRST, NO_YEAR_NAMED):
        for match in pattern.finditer(text):
            yield match, {"month": MONTHS[match["name"].lower()]}
    for match in NUMERIC.finditer(text):
        yield match, _day_and_month(int(match["first"]), int(match["other"]), match["sep"])
    for match in SHORT_YEAR.finditer(text):
        yield match, _short_year(match)
    for match in NO_YEAR.finditer(text):
        yield match, {}


def _day_and_month(first: int, other: int, sep: str) -> dict[str, int]:
    """Month first with slashes (as in America) unless that cannot be; day first with dots."""
    if sep == "." or first > 12:
        return {"day": first, "month": other}
    return {"month": first, "day": other}


def _short_year(match: re.Match[str]) -> dict[str, int]:
    """Year first where it cannot be anything else or has two digits before hyphens (18-03-08), last otherwise."""
    a, b, c = (int(match[name]) for name in ("a", "b", "c"))
    if match["sep"] == "-" and len(match["a"]) == 2 and (a > 12 or b <= 12 < c):
        return {"year": 2000 + a, "month": b, "day": c}
    return {"year": 2000 + c, **_day_and_month(a, b, match["sep"])}


def _clock(parts: dict[str, str]) -> timedelta | None:
    """Time of day from the groups of CLOCK, or None where none was shown or it cannot be."""
    if "hour" not in parts:
        return None
    hour = int(parts["hour"])
    half = (parts.get("half") or parts.get("half2") or "").lower()[:1]
    spoken = parts.get("half_zh", "")
    if half == "p" or spoken in {"下午", "晚上", "晚间", "傍晚"} or (spoken in {"中午", "午间"} and hour < 11):
        hour = hour + 12 if hour < 12 else hour
    elif (half == "a" or spoken == "凌晨") and hour == 12:
        hour = 0
    if hour > 24 or (half and int(parts["hour"]) > 23):
        return None
    return timedelta(hours=hour, minutes=int(parts.get("minute") or 0), seconds=int(parts.get("second") or 0))
