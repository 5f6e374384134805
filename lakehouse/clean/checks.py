"""Declared checks on one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.model.record import Action
from lakehouse.specs.checks import Check, ChecksSpec


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say of a row: `action` None means it passes; flags gathered up to there, sorted."""

    action: Action | None
    reason: str | None
    detail: str | None
    flags: tuple[str, ...]


def judge_row(row: Mapping[str, Any], checks: ChecksSpec) -> Verdict:
    """The first check with reject, drop or review that a row does not pass decides; flags are gathered from all."""
    flags: set[str] = set()
    decided: tuple[Check, str] | None = None
    for check in checks.rules:
        wrong = _wrong(row.get(check.field), check)
        if wrong is None:
            continue
        if check.action is Action.FLAG:
            flags.add(check.reason)
        elif decided is None:
            decided = (check, wrong)
    if decided is None:
        return Verdict(None, None, None, tuple(sorted(flags)))
    check, wrong = decided
    return Verdict(check.action, check.reason, wrong, tuple(sorted(flags)))


def _wrong(value: Any, check: Check) -> str | None:
    """Why a value does not pass, or None. Nothing counts as 0 against `min` and `max`."""
    if check.present and (value is None or value in ("", [], (), {})):
        return f"{check.field} is missing"
    size = _size(value)
    if check.min is not None and size < check.min:
        return f"{check.field} is {size:g}, below {check.min:g}"
    if check.max is not None and size > check.max:
        return f"{check.field} is {size:g}, above {check.max:g}"
    return None


def _size(value: Any) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str | list | tuple | Mapping):
        return float(len(value))
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
