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
    decided: Check | None = None
    for check in checks.rules:
        if check.passes(row.get(check.field)):
            continue
        if check.action is Action.FLAG:
            flags.add(check.reason)
        elif decided is None:
            decided = check
    if decided is None:
        return Verdict(None, None, None, tuple(sorted(flags)))
    return Verdict(decided.action, decided.reason, _describe(row.get(decided.field), decided), tuple(sorted(flags)))


def _describe(value: Any, check: Check) -> str:
    """What is wrong with a value, such as `body has length 12, wanted at least 201`."""
    if value is None or (check.present and not value):
        return f"{check.field} is missing"
    bounds = (("at least", check.min), ("more than", check.above), ("at most", check.max))
    wanted = " and ".join(f"{words} {bound:g}" for words, bound in bounds if bound is not None)
    sized = isinstance(value, str | list | tuple | dict)
    return (
        f"{check.field} has length {len(value)}, wanted {wanted}"
        if sized
        else f"{check.field} is {value}, wanted {wanted}"
    )
