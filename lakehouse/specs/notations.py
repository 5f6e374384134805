"""Values in a notation of their own: cron, regex, CSS selectors, host names, charsets, zones.

Each function gives its value back, or raises Misfit with what is wrong and an example of what would be right. Client
libraries are loaded on first use, so that reading a file without such values stays quick.
"""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehouse.model.urls import url_host
from lakehouse.specs.base import Misfit, near_names

MAX_PATTERN = 2000
LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})


@lru_cache(maxsize=4096)
def checked_cron(value: str) -> str:
    """A cron expression of five fields that is due some day."""
    from croniter import CroniterBadDateError, croniter

    right = "write five fields: minute hour day month weekday, such as '30 6 * * *'"
    fields = value.split()
    if len(fields) != 5:
        raise Misfit(f"cron {value[:60]!r} has {len(fields)} fields", right)
    if not croniter.is_valid(value):
        raise Misfit(f"cron {value[:60]!r} cannot be right", right)
    if any(field[0] in "rR" for field in fields):
        raise Misfit(f"cron {value[:60]!r} draws a time at random", right)
    try:
        croniter(value, LEAP_YEAR).get_next()
    except CroniterBadDateError:
        raise Misfit(f"cron {value[:60]!r} is never due", "name a day that exists, such as '0 6 1 * *'") from None
    return value


@lru_cache(maxsize=4096)
def checked_regex(value: str) -> str:
    """A regular expression of Python's `re`."""
    if not value or len(value) > MAX_PATTERN:
        wrong = "the regex is empty" if not value else f"the regex is longer than {MAX_PATTERN} characters"
        raise Misfit(wrong, "write a regex such as /20[0-9]{2}/.*\\.html$")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise Misfit(
            f"regex {value[:80]!r} cannot be read: {error}", "mend it; in YAML put a regex in single quotes"
        ) from None
    return value


@lru_cache(maxsize=4096)
def checked_css(value: str) -> str:
    """A CSS selector of elements."""
    right = "write a selector of elements such as 'ul.news > li a'"
    if "::" in value:
        raise Misfit(f"selector {value[:80]!r} asks for a part of an element", right)
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p>").css(value)
    except SelectolaxError:
        raise Misfit(f"selector {value[:80]!r} cannot be read", right) from None
    return value


def checked_host(value: str) -> str:
    """A bare host name in its normal form."""
    right = "write a host name without scheme, port and path, such as news.example.com"
    if set(value) & set("/:@?#*\\ ") or not value:
        raise Misfit(f"{value[:80]!r} is not a bare host name", right)
    try:
        return url_host(f"http://{value}/")
    except ValueError:
        raise Misfit(f"{value[:80]!r} is not a host name", right) from None


def checked_charset(value: str) -> str:
    """The name of a charset that Python decodes text with."""
    right = "name a charset such as utf-8, gb18030 or big5"
    try:
        if codecs.lookup(value).name in NO_CHARSETS:
            raise Misfit(f"charset {value[:60]!r} does not encode pages", right)
        b"a".decode(value, "replace")
    except (LookupError, UnicodeError):
        raise Misfit(f"charset {value[:60]!r} is unknown", right) from None
    return value


@lru_cache(maxsize=256)
def checked_zone(value: str) -> str:
    """An IANA time zone."""
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        from zoneinfo import available_timezones

        names = available_timezones()
        hint = near_names(value, names, "zones", most=0) if len(value) <= 60 else ""
        hint = hint if hint.startswith("did you mean") else "write an IANA name such as Asia/Shanghai"
        raise Misfit(f"time zone {value[:60]!r} is unknown", hint) from None
    return value
