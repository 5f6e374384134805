"""Times as pages show them, Chinese and English, to aware instants with a confidence.

A full date is absolute; a date without a year and `3小时前` are relative to the fetch. What cannot be a publish
time (31 February, after the fetch, before 1990) is no time at all, and nothing ever becomes "now".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from lakehouse.model.record import TimeConfidence
from lakehouse.parse.relative import relative_times
from lakehouse.parse.timeforms import WORTH_A_LOOK, Written, compact_date, plain_text, written_dates
from lakehouse.parse.zones import zone_of

EARLIEST_YEAR = 1990
SLACK = timedelta(hours=1)
MAX_TEXT = 2000
STAMP = re.compile(r"^\d{10}(?:\d{3})?(?:\.\d+)?$")
RANGE = re.compile(r"(?<![T:\d])\d{1,2}:\d\d-\d\d:\d\d$")


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
        text = plain_text(text[:MAX_TEXT])
        found = [time for written in written_dates(text) if (time := self._time_of(written)) is not None]
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
        compact = compact_date(text[:MAX_TEXT])
        return self._time_of(compact) if compact else None

    def believable(self, value: datetime) -> bool:
        """Whether a page fetched then can have been published at `value`."""
        return value.year >= EARLIEST_YEAR and value <= self.collected + SLACK

    def _time_of(self, written: Written) -> FoundTime | None:
        """The time of a written date, None where it cannot be; without a year, the last such day before the fetch."""
        if written.year is not None:
            return self._in_year(written, written.year)
        year = self.collected.astimezone(self.zone).year
        return self._in_year(written, year) or self._in_year(written, year - 1)

    def _in_year(self, written: Written, year: int) -> FoundTime | None:
        try:
            naive = datetime(year, written.month, written.day) + (written.clock or timedelta())  # noqa: DTZ001
        except (ValueError, OverflowError):
            return None
        word = written.parts.get("zone") if written.clock is not None and not RANGE.search(written.text) else None
        zone = zone_of(word, naive, self.language) if word else None
        value = naive.replace(tzinfo=zone or self.zone)
        if not self.believable(value):
            return None
        return FoundTime(
            value,
            TimeConfidence.RELATIVE if written.year is None else TimeConfidence.ABSOLUTE,
            written.precision,
            zone is not None,
            written.text,
            written.start,
            written.end,
            year_shown=written.year is not None,
        )


def read_time(
    text: str, zone: ZoneInfo, collected: datetime, language: str | None = None
) -> tuple[datetime | None, TimeConfidence]:
    """The first time in a text as an aware datetime with its confidence; (None, UNKNOWN) where there is none."""
    found = TimeReader(zone, collected, language).stamp(text)
    return (found.value, found.confidence) if found else (None, TimeConfidence.UNKNOWN)


def _longest(found: list[FoundTime]) -> list[FoundTime]:
    kept: list[FoundTime] = []
    for time in sorted(found, key=lambda time: (time.start - time.end, time.start)):
        if all(time.end <= other.start or time.start >= other.end for other in kept):
            kept.append(time)
    return sorted(kept, key=lambda time: time.start)
