"""What is computed from clean rows and books: per record, per page over all days, per source and day.

Rows have the columns of their feature schema but for `schema_version`, which the writer adds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakehouse.clean.quality import count_chars, count_marks, count_paragraphs
from lakehouse.clean.simhash import simhash
from lakehouse.model.record import Outcome

Row = Mapping[str, Any]
SENTENCE_END = re.compile(r"[。！？!?…]+|\.(?=\s|$)")
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
SHORT_LINE = 20
IDENTITY = ("source", "dt", "url_fp", "canonical_fp", "fetch_id", "content_hash")


def article_features(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles`, one a row of `clean.articles`, sorted by `url_fp` and fetch."""
    return [_features(row) for row in sorted(rows, key=lambda row: (row["url_fp"], row["fetch_id"]))]


def _features(row: Row) -> dict[str, Any]:
    body = row.get("body") or ""
    chars = count_chars(body)
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    repeats = Counter(lines)
    return {
        **{name: row[name] for name in IDENTITY},
        "language": row.get("language"),
        "title_chars": count_chars(row.get("title")),
        "body_chars": chars,
        "paragraphs": count_paragraphs(body),
        "sentences": max(len(SENTENCE_END.findall(body)), 1 if chars else 0),
        "han_chars": len(HAN.findall(body)),
        "words": len(WORD.findall(body)),
        "simhash": simhash(body),
        "body_quality": row.get("body_quality"),
        "punctuation_ratio": _share(count_marks(body), chars),
        "digit_ratio": _share(sum(char.isdigit() for char in body), chars),
        "short_line_ratio": _share(sum(len(line) < SHORT_LINE for line in lines), len(lines)),
        "repeated_line_ratio": _share(sum(count for count in repeats.values() if count > 1), len(lines)),
        "has_author": bool(row.get("author")),
        "time_confidence": row["time_confidence"],
        "collect_time": row["collect_time"],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def articles_current(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles_current`: the newest revision of each page of each source, over all given days."""
    pages: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        pages.setdefault((row["source"], row["canonical_fp"]), []).append(row)
    return [_current(revisions) for _, revisions in sorted(pages.items())]


def _current(revisions: Sequence[Row]) -> dict[str, Any]:
    days = [row["dt"] for row in revisions]
    return {
        **max(revisions, key=lambda row: (row["collect_time"], row["fetch_id"])),
        "first_seen_dt": min(days),
        "last_seen_dt": max(days),
        "revisions": len({row["content_hash"] for row in revisions}),
    }


def source_daily(
    key: Row,
    *,
    fetches: Sequence[Row],
    outcomes: Sequence[Row],
    rows: Sequence[Row],
    entries: int,
    fields: Iterable[str],
) -> dict[str, Any]:
    """The row of `feature.source_daily` for one source and day.

    `key` holds source, dt and dataset; `fetches` need `collect_time`, `body_bytes` and `elapsed_ms`; `fields` are the
    names whose missing values are counted in the clean `rows`.
    """
    counts = Counter(str(row["outcome"]) for row in outcomes)
    times = [row["collect_time"] for row in fetches]
    return {
        **key,
        "fetches": len(fetches),
        **{outcome.value: counts[outcome.value] for outcome in Outcome},
        "rows_out": len(rows),
        "entries": entries,
        "distinct_pages": len({row["canonical_fp"] for row in rows}),
        "body_bytes": sum(row["body_bytes"] or 0 for row in fetches),
        "mean_elapsed_ms": _mean(row["elapsed_ms"] for row in fetches),
        "mean_body_chars": _mean(row.get("body_chars") for row in rows),
        "mean_body_quality": _mean(row.get("body_quality") for row in rows),
        "missing_rates": {name: _share(sum(_is_missing(row.get(name)) for row in rows), len(rows)) for name in fields},
        "reasons": dict(sorted(Counter(row["reason"] for row in outcomes if row["reason"]).items())),
        "first_collect_time": min(times, default=None),
        "last_collect_time": max(times, default=None),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def _is_missing(value: Any) -> bool:
    return value is None or value in ("", [])
