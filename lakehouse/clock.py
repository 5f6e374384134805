"""Time: one business time zone decides every `dt`, whatever the zone of the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehouse.errors import ConfigError


def system_now() -> datetime:
    """The current instant in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """Says what time it is and to which business day an instant belongs."""

    zone: ZoneInfo
    now_utc: Callable[[], datetime] = system_now

    @classmethod
    def in_zone(cls, name: str, now_utc: Callable[[], datetime] = system_now) -> Clock:
        """A clock for an IANA zone name such as `Asia/Shanghai`; raises ConfigError for an unknown one."""
        try:
            return cls(ZoneInfo(name), now_utc)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ConfigError(
                f"business time zone {name!r} is unknown; give an IANA name such as Asia/Shanghai"
            ) from error

    def now(self) -> datetime:
        """The current instant in the business zone (aware)."""
        return self.now_utc().astimezone(self.zone)

    def today(self) -> date:
        """The current business day."""
        return self.now().date()

    def day_of(self, instant: datetime) -> date:
        """The business day of an aware instant."""
        if instant.tzinfo is None:
            raise ValueError("a business day needs an aware instant, got a naive one")
        return instant.astimezone(self.zone).date()

    def start_of(self, day: date) -> datetime:
        """The first instant of a business day, in UTC."""
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)

    def parse_day(self, text: str) -> date:
        """A business day from `YYYY-MM-DD`; raises ConfigError for another form or a day in the future."""
        try:
            day = date.fromisoformat(text)
        except ValueError as error:
            raise ConfigError(f"day {text!r} is not a date; write it as YYYY-MM-DD") from error
        if len(text) != 10:
            raise ConfigError(f"day {text!r} is not in the form YYYY-MM-DD")
        if day > self.today():
            raise ConfigError(f"day {text} lies in the future; today is {self.today()} in {self.zone.key}")
        return day


def days_between(first: date, last: date) -> list[date]:
    """All days from `first` to `last`, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
