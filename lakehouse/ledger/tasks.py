"""Tasks as values: what is asked for, what a worker holds, and how an attempt ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Self

from lakehouse.model.fetch import FetchKind


class TaskState(StrEnum):
    """Where a task stands; done and failed are ends."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


ENDED = (TaskState.DONE, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class NewTask:
    """One URL to collect in one run (`source`, `dt`, `name`, `run_key`); asked for twice it is still one task.

    `entry` is what the list said of the page; `memo` is what a list page must know of the pages before it.
    """

    source: str
    dt: date
    name: str
    run_key: str
    kind: FetchKind
    url: str
    url_fp: str
    parent_task_id: str | None = None
    page_no: int = 1
    entry: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 50

    def as_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        return {**asdict(self), "dt": self.dt.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`."""
        return cls(**{**value, "dt": date.fromisoformat(value["dt"]), "kind": FetchKind(value["kind"])})


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that a worker holds: what it asks for, its id, and how many attempts were made before."""

    task_id: str
    attempts: int
    ask: NewTask


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one attempt ended, written beside its fetch before the ledger knows: applying it twice changes nothing.

    `state` is done, failed, or pending for a retry not before `not_before`. `stored_url` replaces the URL of an ended
    task (its secret parameters blanked).
    """

    task_id: str
    worker_id: str
    attempt: int
    state: TaskState
    reason: str | None = None
    not_before: datetime | None = None
    stored_url: str | None = None
    children: tuple[NewTask, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        return {
            "task_id": self.task_id,
            "worker_id": self.worker_id,
            "attempt": self.attempt,
            "state": self.state,
            "reason": self.reason,
            "not_before": None if self.not_before is None else self.not_before.isoformat(),
            "stored_url": self.stored_url,
            "children": [child.as_json() for child in self.children],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`."""
        not_before = value["not_before"]
        return cls(
            **{
                **value,
                "state": TaskState(value["state"]),
                "not_before": None if not_before is None else datetime.fromisoformat(not_before),
                "children": tuple(NewTask.from_json(child) for child in value["children"]),
            }
        )
