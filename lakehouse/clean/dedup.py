"""Duplicates inside one partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from lakehouse.model.record import TimeConfidence

RowKey = tuple[str, str]


def content_hash(row: Mapping[str, Any]) -> str:
    """sha256 over title, body and publish time in normal form (white space left out, UTC seconds).

    A time that was only relative to the fetch is left out: it would differ from fetch to fetch of the same page.
    Rows of datasets without a body hash all their values instead.
    """
    if "body" not in row:
        parts = [f"{name}={_plain(row[name])}" for name in sorted(row)]
    else:
        absolute = row.get("time_confidence") == TimeConfidence.ABSOLUTE
        parts = [
            "".join(str(row.get("title") or "").split()),
            "".join(str(row.get("body") or "").split()),
            _plain(row.get("publish_time")) if absolute else "",
        ]
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", errors="replace")).hexdigest()


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    return "" if value is None else str(value)


def split_duplicates(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[tuple[Mapping[str, Any], str]]]:
    """Rows to keep, and (row, fetch_id of the kept one) for the others.

    Rows with the same `canonical_fp` and `content_hash` are one; the earliest by collect time, then fetch id, stays.
    """
    kept: dict[RowKey, Mapping[str, Any]] = {}
    others: list[tuple[Mapping[str, Any], str]] = []
    for row in sorted(rows, key=lambda row: (row["collect_time"], row["fetch_id"])):
        first = kept.setdefault((row["canonical_fp"], row["content_hash"]), row)
        if first is not row:
            others.append((row, first["fetch_id"]))
    return list(kept.values()), others
