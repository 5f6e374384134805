"""Times as pages show them, Chinese and English, to aware instants with a confidence.

A full date is absolute; a date without a year and `3小时前` are relative to the fetch. What cannot be a publish time (31
February, the future of the fetch, before 1990) is no time at all, and nothing ever becomes "now".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from lakehouse.model.record import TimeConfidence
from lakehouse.parse.relative import relative_times
from lakehouse.parse.zones import ZONE, zone_of

EARLIEST_YEAR = 1990
SLACK = timedelta(hours=1)
MAX_TEXT = 2000
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
WEEKDAY = r"(?:\s*[(（]?\s*(?:星期|周|週)[一二三四五六日天]\s*[)）]?|\s*,?\s*\(?(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?\)?)?"
CLOCK = rf"(?:{HALF_ZH}\s*)?{HOUR}(?:{MINUTES}\s?{HALF}?|\s?{HALF.replace('half', 'half2')}|\s?[时點点](?!\d))(?:\s?\(?{ZONE}\)?)?"
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
    rf"(?:{JOIN}{CLOCK})?|[-/](?P<day2>0[1-9]|[12]\d|3[01])\s+(?={HOUR.replace('hour', 'h_')}[:：]){CLOCK.replace('(?P<', '(?P<z_')})",
    re.IGNORECASE,
)
NO_YEAR_NAMED = re.compile(
    rf"(?<![A-Za-z]){MONTH}\s(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\d|,?\s*(?:19|20)\d\d)" + AFTER,
    re.IGNORECASE,
)
CLOCK_FIRST = re.compile(
    CLOCK + r"(?:,|\s|\bon\b|\||-|–|—|·|•)*(?:mon|tue|wed|thu|fri|sat|sun)?[a-z]{0,6}[,.]?\s*$", re.IGNORECASE
)
COMPACT = re.compile(r"(?<!\d)(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])"
                     r"(?:T?(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?)?(?:Z|\.\d+Z)?(?!\d)")  # fmt: skip
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
RANGE = re.compile(r"(?<!T)\b\d{1,2}:\d\d-\d\d:\d\d$")
STAMP = re.compile(r"^\d{10}(?:\d{3})?(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class FoundTime:
    """One time in a text: `value` is aware; `precision` is `day`, `minute` or `second`; `zoned` if an offset was shown.

    `year_shown` is False where the year was taken from the fetch. `start`, `end` are its place in the text.
    """

    value: datetime
    confidence: TimeConfidence
    precision: str
    zoned: bool
    text: str
    start: int
    end: int
    year_shown: bool = True


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Reads times of one page: its zone, when it was fetched, its language; `relative` False leaves such times out."""

    zone: tzinfo
    collected: datetime
    language: str | None = None
    relative: bool = True

    def find(self, text: str) -> list[FoundTime]:
        """All times in a text, first to last; where two overlap the longer one."""
        if not WORTH_A_LOOK.search(text[:MAX_TEXT]):
            return []
        text = _plain(text[:MAX_TEXT])
        found = [time for match in _matches(text) if (time := self._absolute(text, *match)) is not None]
        if not found and self.relative:
            found = [
                FoundTime(value, TimeConfidence.RELATIVE, precision, zoned=False, text=shown, start=start, end=end)
                for value, precision, shown, start, end in relative_times(text, self.collected.astimezone(self.zone))
                if self.believable(value)
            ]
        return _longest(found)

    def first(self, text: str | None) -> FoundTime | None:
        """The first time in a text, or None."""
        found = self.find(text) if text else []
        return found[0] if found else None

    def stamp(self, text: str) -> FoundTime | None:
        """A machine's time: any written form, unix seconds or milliseconds, or digits such as 20240305083000."""
        text = text.strip()
        if STAMP.match(text):
            number = float(text)
            value = datetime.fromtimestamp(number / 1000 if number >= 1e11 else number, UTC).astimezone(self.zone)
            if not self.believable(value):
                return None
            return FoundTime(value, TimeConfidence.ABSOLUTE, "second", zoned=True, text=text, start=0, end=len(text))
        found = self.first(text)
        if found is not None:
            return found
        compact = COMPACT.search(text)
        return self._absolute(text, compact, {}) if compact else None

    def believable(self, value: datetime) -> bool:
        """Whether a page fetched then can have been published at `value`."""
        return value.year >= EARLIEST_YEAR and value <= self.collected + SLACK

    def _absolute(self, text: str, match: re.Match[str], given: dict[str, int]) -> FoundTime | None:
        parts = {name.removeprefix("z_"): part for name, part in match.groupdict().items() if part is not None}
        clock = _clock(parts)
        start = match.start()
        if "hour" not in parts and "name" in parts:
            before = CLOCK_FIRST.search(text, max(0, start - 40), start)
            if before is not None:
                parts |= {name: part for name, part in before.groupdict().items() if part is not None}
                clock, start = _clock(parts), before.start()
        shown = text[start : match.end()].strip()
        if "year" not in given and "year" not in parts:
            return self._without_year(parts, given, clock, shown, start, match.end())
        try:
            year, month, day = (given.get(n) or int(parts[n]) for n in ("year", "month", "day"))
            year += 2000 if year < 100 else 0
            naive = datetime(year, month, day) + (clock or timedelta())  # noqa: DTZ001
        except (ValueError, OverflowError):
            return None
        return self._found(naive, parts, clock, shown, start, match.end())

    def _without_year(
        self, parts: dict[str, str], given: dict[str, int], clock: timedelta | None, shown: str, start: int, end: int
    ) -> FoundTime | None:
        """A date without a year: the last such day before the fetch."""
        month = given.get("month") or int(parts["month"])
        day = given.get("day") or int(parts.get("day") or parts["day2"])
        year = self.collected.astimezone(self.zone).year
        for candidate in (year, year - 1):
            try:
                naive = datetime(candidate, month, day) + (clock or timedelta())  # noqa: DTZ001
            except ValueError:
                continue
            found = self._found(naive, parts, clock, shown, start, end, year_shown=False)
            if found is not None:
                return found
        return None

    def _found(
        self,
        naive: datetime,
        parts: dict[str, str],
        clock: timedelta | None,
        shown: str,
        start: int,
        end: int,
        *,
        year_shown: bool = True,
    ) -> FoundTime | None:
        word = parts.get("zone") if clock is not None and not RANGE.search(shown) else None
        zone = zone_of(word, naive, self.language) if word else None
        value = naive.replace(tzinfo=zone or self.zone)
        if not self.believable(value):
            return None
        precision = "day" if clock is None else "second" if "second" in parts else "minute"
        confidence = TimeConfidence.ABSOLUTE if year_shown else TimeConfidence.RELATIVE
        return FoundTime(value, confidence, precision, zone is not None, shown, start, end, year_shown)


def read_time(
    text: str, zone: ZoneInfo, collected: datetime, language: str | None = None
) -> tuple[datetime | None, TimeConfidence]:
    """The first time in a text as an aware datetime with its confidence; (None, UNKNOWN) where there is none."""
    found = TimeReader(zone, collected, language).stamp(text)
    return (found.value, found.confidence) if found else (None, TimeConfidence.UNKNOWN)


def _plain(text: str) -> str:
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


def _longest(found: list[FoundTime]) -> list[FoundTime]:
    kept: list[FoundTime] = []
    for time in sorted(found, key=lambda time: (time.start - time.end, time.start)):
        if all(time.end <= other.start or time.start >= other.end for other in kept):
            kept.append(time)
    return sorted(kept, key=lambda time: time.start)
