"""Fetches, entries and ended tasks as JSON objects and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeVar

from lakehouse.model.fetch import EndedTask, Entry, Fetch, FetchKind

Row = TypeVar("Row", Fetch, Entry, EndedTask)

READERS: Mapping[str, Callable[[Any], Any]] = {
    "dt": date.fromisoformat,
    "kind": FetchKind,
    "redirects": tuple,
    "history": tuple,
    "collect_time": datetime.fromisoformat,
    "created_at": datetime.fromisoformat,
    "ended_at": datetime.fromisoformat,
}


def row_as_json(row: Fetch | Entry | EndedTask) -> dict[str, Any]:
    """A JSON object that `row_from_json` reads; instants keep their offset."""
    return {field.name: _plain(getattr(row, field.name)) for field in fields(row)}


def row_from_json(kind: type[Row], value: Mapping[str, Any]) -> Row:
    """The inverse of `row_as_json`."""
    read = {name: READERS[name](item) if name in READERS and item is not None else item for name, item in value.items()}
    return kind(**read)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
