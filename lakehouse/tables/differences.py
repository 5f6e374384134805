"""Two versions of the same partition, row by row: what was added, removed and changed, by key and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
KEYS = (("fetch_id", "url_fp"), ("fetch_id",), ("url_fp",), ("source", "dt"))
TABLE_KEYS = {"clean.rejects": ("fetch_id", "stage", "reason")}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows were added, removed and changed, and in which columns, with the number of changes."""

    added: int
    removed: int
    changed: int
    columns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowDiff:
    """All rows that differ; `changed` pairs a row before with the row after."""

    key: tuple[str, ...]
    added: list[Row]
    removed: list[Row]
    changed: list[tuple[Row, Row]]

    def counts(self) -> RowCounts:
        """The numbers alone."""
        columns = Counter(name for old, new in self.changed for name in changed_columns(old, new))
        return RowCounts(len(self.added), len(self.removed), len(self.changed), dict(sorted(columns.items())))


def key_columns(table: str, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that tell a row of a table from the others of its partition."""
    names = set(columns)
    declared = TABLE_KEYS.get(table)
    if declared is not None:
        return declared
    return next((key for key in KEYS if names >= set(key)), tuple(sorted(names)))


def compare_rows(table: str, before: pa.Table, after: pa.Table) -> RowDiff:
    """What makes `after` of `before`, rows of one partition; a column that one side lacks is null there."""
    names = list(dict.fromkeys([*before.column_names, *after.column_names]))
    key = key_columns(table, names)
    old, new = (_by_key(frame.to_pylist(), key, names) for frame in (before, after))
    diff = RowDiff(key, [], [], [])
    for value in sorted({*old, *new}, key=repr):
        olds, news = _without_same(old.get(value, []), new.get(value, []))
        pairs = min(len(olds), len(news))
        diff.changed.extend(zip(olds[:pairs], news[:pairs], strict=True))
        diff.removed.extend(olds[pairs:])
        diff.added.extend(news[pairs:])
    return diff


def changed_columns(old: Row, new: Row) -> list[str]:
    """The columns in which two rows differ."""
    return [name for name in old if old[name] != new[name]]


def _by_key(rows: list[Row], key: Sequence[str], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in key), []).append({name: row.get(name) for name in names})
    return found


def _without_same(olds: list[Row], news: list[Row]) -> tuple[list[Row], list[Row]]:
    left = sorted(news, key=repr)
    gone = []
    for row in sorted(olds, key=repr):
        if row in left:
            left.remove(row)
        else:
            gone.append(row)
    return gone, left
