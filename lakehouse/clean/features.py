"""What is computed from clean rows and books: per record, per page over all days, per source and day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakehouse.clean.quality import count_chars, count_marks, count_paragraphs
from lakehouse.clean.simhash import simhash
from lakehouse.model.record import Outcome

Row = Mapping[str, Any]
SENTENCE = re.compile(r"[。！？!?…]+|\.(?=\s|$)|\n")
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['’-][^\W\d_]+)*")
SHORT_LINE = 20


def article_features(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles`, one a row of `clean.articles`, sorted by `url_fp` and fetch."""
    return [_features(row) for row in sorted(rows, key=lambda row: (row["url_fp"], row["fetch_id"]))]


def _features(row: Row) -> dict[str, Any]:
    body = row.get("body") or ""
    chars = count_chars(body)
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    repeats = Counter(lines)
    return {
        "source": row["source"],
        "dt": row["dt"],
        "url_fp": row["url_fp"],
        "canonical_fp": row["canonical_fp"],
        "fetch_id": row["fetch_id"],
        "content_hash": row["content_hash"],
        "language": row.get("language"),
        "title_chars": count_chars(row.get("title")),
        "body_chars": chars,
        "paragraphs": count_paragraphs(body),
        "sentences": sum(1 for part in SENTENCE.split(body) if count_chars(part)),
        "han_chars": len(HAN.findall(body)),
        "words": len(WORD.findall(body)),
        "simhash": simhash(body),
        "body_quality": row.get("body_quality"),
        "punctuation_ratio": _share(count_marks(body), chars),
        "digit_ratio": _share(sum(map(str.isdigit, body)), chars),
        "short_line_ratio": _share(sum(1 for line in lines if count_chars(line) < SHORT_LINE), len(lines)),
        "repeated_line_ratio": _share(sum(count for count in repeats.values() if count > 1), len(lines)),
        "has_author": bool(row.get("author")),
        "time_confidence": row.get("time_confidence") or 0,
        "collect_time": row["collect_time"],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def articles_current(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles_current`: the newest revision of each page of a source, over all the days given.

    Newest is the greatest (collect time, fetch id); `revisions` counts different contents; sorted by page.
    """
    pages: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        pages.setdefault((row["source"], row["canonical_fp"]), []).append(row)
    return [_current(seen) for _, seen in sorted(pages.items(), key=lambda item: item[0])]


def _current(seen: Sequence[Row]) -> dict[str, Any]:
    newest = max(seen, key=lambda row: (row["collect_time"], row["fetch_id"]))
    days = [row["dt"] for row in seen]
    return {
        **newest,
        "first_seen_dt": min(days),
        "last_seen_dt": max(days),
        "revisions": len({row["content_hash"] for row in seen}),
    }


def source_daily(
    key: Row,
    *,
    fetches: Iterable[Row],
    outcomes: Iterable[Row],
    rows: Iterable[Row],
    entries: int,
    fields: Sequence[str],
) -> dict[str, Any]:
    """The row of `feature.source_daily` for one source, dt and dataset (`key`), from that day's raw and clean rows.

    `fields` are the dataset's own fields, whose missing rates are counted.
    """
    exchanges, books, clean = list(fetches), list(outcomes), list(rows)
    counts = Counter(str(row["outcome"]) for row in books)
    reasons = Counter(row["reason"] for row in books if row["reason"] is not None)
    times = sorted(row["collect_time"] for row in exchanges)
    return {
        **key,
        "fetches": len(exchanges),
        **{outcome.value: counts[outcome.value] for outcome in Outcome},
        "rows_out": sum(row["rows_out"] for row in books),
        "entries": entries,
        "distinct_pages": len({row["canonical_fp"] for row in clean}),
        "body_bytes": sum(row["body_bytes"] or 0 for row in exchanges),
        "mean_elapsed_ms": _mean([row["elapsed_ms"] for row in exchanges], 1),
        "mean_body_chars": _mean([row.get("body_chars") for row in clean], 1),
        "mean_body_quality": _mean([row.get("body_quality") for row in clean], 4),
        "missing_rates": {
            name: _share(sum(map(_is_missing, clean, [name] * len(clean))), len(clean)) for name in fields
        },
        "reasons": dict(sorted(reasons.items())),
        "first_collect_time": times[0] if times else None,
        "last_collect_time": times[-1] if times else None,
    }


def _is_missing(row: Row, name: str) -> bool:
    return row.get(name) in (None, "", [])


def _mean(values: Iterable[float | None], places: int) -> float | None:
    """The mean of sorted values, so that the order they came in changes not even the last digit."""
    known = sorted(value for value in values if value is not None)
    return round(sum(known) / len(known), places) if known else None
