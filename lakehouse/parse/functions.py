"""Post-processing steps of templates: what `then` may name, each with the arguments it takes.

A step gets all that the rule found (a list of texts) and gives a list, or a single value that later steps keep.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urljoin

import regex

from lakehouse.parse.times import FoundTime, TimeReader

REGEX_SECONDS = 1.0
MAX_MATCHES = 1000
MAX_NUMBER_CHARS = 60
NUMBER = regex.compile(r"[-+]?\d[\d,，]*(?:\.\d+)?")
INTEGER = regex.compile(r"[-+]?\d[\d,，]*")
UNITS = {"万": 10_000, "亿": 100_000_000, "千": 1_000}


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step may know of the page."""

    times: TimeReader
    url: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function: its types, whether it must be given, what it means, and whether it is a regex."""

    types: tuple[type, ...]
    meaning: str
    required: bool = False
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A step: `apply(values, context, **arguments)`."""

    apply: Callable[..., list[Any]]
    meaning: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)


def _each(change: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A step that changes every text by itself; None drops it, other values pass."""

    def apply(values: list[Any], _context: StepContext, **arguments: Any) -> list[Any]:
        changed = [change(value, **arguments) if isinstance(value, str) else value for value in values]
        return [value for value in changed if value is not None]

    return apply


def _whole(change: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A step that looks at all values together and needs to know nothing of the page."""

    def apply(values: list[Any], _context: StepContext, **arguments: Any) -> list[Any]:
        return change(values, **arguments)

    return apply


def _join(values: list[Any], by: str = " ") -> list[Any]:
    return [by.join(str(value) for value in values)] if values else []


def _split(values: list[Any], by: str) -> list[Any]:
    parts = [part.strip() for value in values if isinstance(value, str) for part in value.split(by)]
    return [part for part in parts if part]


def _nth(values: list[Any], index: int) -> list[Any]:
    return values[index : index + 1 or None]


def _drop(values: list[Any], pattern: str) -> list[Any]:
    """Leave out every line that the pattern is found in."""
    kept = []
    for value in values:
        if not isinstance(value, str):
            kept.append(value)
            continue
        lines = [line for line in value.split("\n") if not search(pattern, line)]
        if lines:
            kept.append("\n".join(lines))
    return kept


def _default(values: list[Any], value: Any) -> list[Any]:
    return [item for item in values if item not in (None, "")] or [value]


def _date(values: list[Any], context: StepContext, format: str | None = None) -> list[Any]:  # noqa: A002
    """The first value that holds a time; `format` reads it with strptime instead."""
    for value in values:
        found = _timed(value, context, format)
        if found is not None:
            return [found]
    return []


def _timed(value: Any, context: StepContext, form: str | None) -> FoundTime | None:
    if isinstance(value, FoundTime):
        return value
    if form is None:
        return context.times.stamp(str(value))
    try:
        moment = datetime.strptime(str(value).strip(), form)  # noqa: DTZ007
    except ValueError:
        return None
    iso = moment.isoformat() if moment.tzinfo else moment.replace(tzinfo=context.times.zone).isoformat()
    return context.times.stamp(iso)


def _absolute_url(values: list[Any], context: StepContext) -> list[Any]:
    found = []
    for value in values:
        try:
            found.append(urljoin(context.url, str(value).strip()))
        except ValueError:
            continue
    return found


def _regex(text: str, pattern: str, group: int | str | None = None) -> str | None:
    match = search(pattern, text)
    if match is None:
        return None
    chosen = group if group is not None else (1 if match.re.groups else 0)
    try:
        found: str | None = match[chosen]
    except IndexError:
        return None
    return found


def _remove_prefix(text: str, prefix: str | list[str]) -> str:
    for start in [prefix] if isinstance(prefix, str) else prefix:
        if text.strip().startswith(start):
            return text.strip()[len(start) :].strip()
    return text


def _remove_suffix(text: str, suffix: str | list[str]) -> str:
    for end in [suffix] if isinstance(suffix, str) else suffix:
        if end and text.strip().endswith(end):
            return text.strip()[: -len(end)].strip()
    return text


def _int(text: str) -> int | None:
    match = INTEGER.search(text[:MAX_NUMBER_CHARS])
    return int(match[0].replace(",", "").replace("，", "")) if match else None


def _decimal(text: str, units: bool = False) -> Decimal | None:
    match = NUMBER.search(text[:MAX_NUMBER_CHARS])
    if match is None:
        return None
    try:
        number = Decimal(match[0].replace(",", "").replace("，", ""))
    except InvalidOperation:
        return None
    unit = UNITS.get(text[match.end() :].strip()[:1], 1) if units else 1
    return number * unit


def _float(text: str) -> float | None:
    number = _decimal(text)
    return float(number) if number is not None else None


def search(pattern: str, text: str) -> regex.Match[str] | None:
    """The first match; raises TimeoutError for a pattern that takes longer than a second."""
    return regex.search(pattern, text, timeout=REGEX_SECONDS)


def _sub(text: str, pattern: str, by: str = "") -> str:
    changed: str = regex.sub(pattern, by, text, timeout=REGEX_SECONDS)
    return changed


TEXT = (str,)
TEXTS = (str, list)
PATTERN = Argument(TEXT, "a regular expression", required=True, pattern=True)

NAMES: dict[str, Function] = {
    "strip": Function(
        _each(lambda text, chars=None: text.strip(chars)),
        "cut blanks, or the given characters, at both ends",
        {"chars": Argument(TEXT, "characters to cut")},
    ),
    "collapse": Function(_each(lambda text: " ".join(text.split())), "make every run of blanks one blank"),
    "unescape": Function(_each(html.unescape), "turn entities such as &amp; into characters"),
    "lower": Function(_each(str.lower), "lower case"),
    "upper": Function(_each(str.upper), "upper case"),
    "first": Function(_whole(lambda values: values[:1]), "keep the first value"),
    "last": Function(_whole(lambda values: values[-1:]), "keep the last value"),
    "nth": Function(
        _whole(_nth),
        "keep one value by its position",
        {"index": Argument((int,), "0 is the first, -1 the last", required=True)},
    ),
    "all": Function(_whole(lambda values: [list(values)]), "keep all values as a list"),
    "join": Function(
        _whole(_join), "join all values", {"by": Argument(TEXT, "what to put between, a blank by default")}
    ),
    "lines": Function(_whole(lambda values: _join(values, by="\n")), "join all values, one a line"),
    "split": Function(_whole(_split), "split at a text", {"by": Argument(TEXT, "the text to split at", required=True)}),
    "replace": Function(
        _each(lambda text, old, new="": text.replace(old, new)),
        "replace a text",
        {"old": Argument(TEXT, "text to look for", required=True), "new": Argument(TEXT, "what to put there")},
    ),
    "sub": Function(
        _each(_sub), "replace what a pattern finds", {"pattern": PATTERN, "by": Argument(TEXT, "what to put there")}
    ),
    "regex": Function(
        _each(_regex),
        "keep what a pattern finds: group 1 where it has groups",
        {"pattern": PATTERN, "group": Argument((int, str), "number or name of the group")},
    ),
    "drop": Function(_whole(_drop), "leave out lines in which a pattern is found", {"pattern": PATTERN}),
    "before": Function(
        _each(lambda text, mark: text.partition(mark)[0].strip()),
        "keep what stands before a text",
        {"mark": Argument(TEXT, "the text", required=True)},
    ),
    "after": Function(
        _each(lambda text, mark: (text.partition(mark)[2] if mark in text else text).strip()),
        "keep what stands after a text",
        {"mark": Argument(TEXT, "the text", required=True)},
    ),
    "remove_prefix": Function(
        _each(_remove_prefix), "cut a beginning", {"prefix": Argument(TEXTS, "one beginning or a list", required=True)}
    ),
    "remove_suffix": Function(
        _each(_remove_suffix), "cut an ending", {"suffix": Argument(TEXTS, "one ending or a list", required=True)}
    ),
    "date": Function(
        _date,
        "read a time in the page's zone",
        {"format": Argument(TEXT, "a strptime format, for forms nobody else has")},
    ),
    "int": Function(_each(_int), "the first whole number"),
    "float": Function(_each(_float), "the first number"),
    "decimal": Function(
        _each(_decimal), "the first number, exactly", {"units": Argument((bool,), "multiply by 千, 万 or 亿 after it")}
    ),
    "absolute_url": Function(_absolute_url, "make a link absolute with the page's URL"),
    "default": Function(
        _whole(_default),
        "a value where nothing was found",
        {"value": Argument((str, int, float, bool, list), "the value", required=True)},
    ),
}
