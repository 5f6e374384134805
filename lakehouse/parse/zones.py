"""Zone words beside a time: offsets, abbreviations and spoken names."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

MAX_OFFSET_MINUTES = 14 * 60
FIXED_HOURS = {
    "z": 0.0, "utc": 0, "gmt": 0, "wet": 0, "bst": 1, "west": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3,
    "sast": 2, "gst": 4, "pkt": 5, "ist": 5.5, "ict": 7, "wib": 7, "hkt": 8, "sgt": 8, "awst": 8, "pht": 8, "myt": 8,
    "jst": 9, "kst": 9, "acst": 9.5, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13, "est": -5, "edt": -4, "cst": -6,
    "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "ast": -4, "adt": -3,
    "brt": -3, "北京时间": 8, "香港时间": 8, "东京时间": 9,
}  # fmt: skip
PLACES = {
    "et": "America/New_York", "ct": "America/Chicago", "mt": "America/Denver", "pt": "America/Los_Angeles",
    "eastern": "America/New_York", "central": "America/Chicago", "mountain": "America/Denver",
    "pacific": "America/Los_Angeles", "美东时间": "America/New_York", "伦敦时间": "Europe/London",
}  # fmt: skip
CHINESE_CST = timedelta(hours=8)
NAMES = "|".join(sorted((re.escape(name) for name in (*FIXED_HOURS, *PLACES)), key=len, reverse=True))
OFFSET = r"[+\-\u2212]\d{1,2}(?::?\d{2})?"
ZONE = rf"(?P<zone>(?:(?:UTC|GMT)\s?)?{OFFSET}(?!\d|[-/.]\d)|(?:{NAMES})(?![A-Za-z]))"
SIGNED = re.compile(r"(?P<sign>[+\-\u2212])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?$")


def zone_of(word: str, naive: datetime, language: str | None) -> tzinfo | None:
    """The zone that a word such as `+08:00`, `EST` or `ET` means at a local time, or None where it means none.

    CST is China's time on a Chinese page and America's elsewhere.
    """
    key = word.strip().lower()
    signed = SIGNED.search(key)
    if signed:
        minutes = int(signed["hours"]) * 60 + int(signed["minutes"] or 0)
        if minutes > MAX_OFFSET_MINUTES or int(signed["minutes"] or 0) > 59:
            return None
        return timezone(timedelta(minutes=minutes if signed["sign"] == "+" else -minutes))
    if key == "cst" and language == "zh":
        return timezone(CHINESE_CST)
    if key in FIXED_HOURS:
        return timezone(timedelta(hours=FIXED_HOURS[key]))
    if key in PLACES:
        offset = naive.replace(tzinfo=ZoneInfo(PLACES[key])).utcoffset()
        return timezone(offset) if offset is not None else None
    return None
