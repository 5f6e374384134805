"""What a page became: parsed values, cleaned rows, rejects and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import IntEnum, StrEnum
from typing import Any


class TimeConfidence(IntEnum):
    """How far a publish time can be believed."""

    UNKNOWN = 0
    RELATIVE = 1
    ABSOLUTE = 2


class Outcome(StrEnum):
    """What became of a fetch; every fetch has exactly one."""

    CLEAN = "clean"
    REJECTED = "rejected"
    IN_REVIEW = "in_review"
    DUPLICATE = "duplicate"
    FAILED = "failed"
    LIMITED = "limited"
    NOT_MODIFIED = "not_modified"
    LISTING = "listing"


class Action(StrEnum):
    """What a check does with a row that does not pass."""

    REJECT = "reject"
    REVIEW = "review"
    FLAG = "flag"
    DROP = "drop"


REJECT_REASONS = (
    "not_html",
    "empty_body",
    "unreadable",
    "template_no_match",
    "required_missing",
    "title_missing",
    "title_too_long",
    "body_missing",
    "body_too_short",
    "low_quality",
    "duplicate_in_partition",
    "value_misfit",
    "snapshot_missing",
    "snapshot_corrupt",
    "parser_limit",
    "taken_out",
)


@dataclass(frozen=True, slots=True)
class Page:
    """One stored body with what is needed to parse it; the parser sees nothing else.

    `body` is the bytes to parse (rendered DOM where there is one); `collect_time` is aware; `entry` is what the list
    said of the page.
    """

    body: bytes
    url: str
    collect_time: datetime
    charset: str | None = None
    media_type: str | None = None
    entry: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a value came from: the rule that gave it, the node's path, and the raw text before any processing."""

    rule: str
    node: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """Values of one page by field name, with their evidence. `template` is `name@version` or `generic@N`."""

    values: Mapping[str, Any]
    evidence: Mapping[str, Evidence]
    template: str
    template_version: int
    problem: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """One row of `clean.rejects`."""

    stage: str
    action: Action
    reason: str
    detail: str
    row: Mapping[str, Any]
    fetch_id: str
    url_fp: str
    task_id: str
    template: str
    template_version: int
    collect_time: datetime
    snap_key: str | None


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One row of `clean.outcomes`."""

    fetch_id: str
    outcome: Outcome
    reason: str | None
    rows_out: int


@dataclass(frozen=True, slots=True)
class CleanDay:
    """All that cleaning one source and day gives, as rows ready for `tables`: dicts with the table's column names."""

    source: str
    dt: date
    rows: tuple[Mapping[str, Any], ...]
    rejects: tuple[Reject, ...]
    outcomes: tuple[OutcomeRow, ...]
