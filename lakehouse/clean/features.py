"""What is computed from clean rows and books: per record, per page over all days, per source and day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lakehouse.clean.quality import count_chars, count_marks
from lakehouse.clean.simhash import simhash
from lakehouse.model.record import Outcome

Row = Mapping[str, Any]
KEYS = ("source", "dt", "schema_version")


def article_features(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles`, one a row of `clean.articles`, sorted by `url_fp` and fetch."""
    return [_features(row) for row in sorted(rows, key=lambda row: (row["url_fp"], row["fetch_id"]))]


def _features(row: Row) -> dict[str, Any]:
    title, body = row.get("title"), row.get("body")
    chars = count_chars(body)
    return {
        **{name: row[name] for name in KEYS},
        "fetch_id": row["fetch_id"],
        "url_fp": row["url_fp"],
        "canonical_fp": row["canonical_fp"],
        "content_hash": row["content_hash"],
        "language": row.get("language"),
        "title_chars": count_chars(title),
        "body_chars": chars,
        "paragraphs": row.get("paragraphs"),
        "marks": count_marks(body),
        "digit_share": _share(sum(char.isdigit() for char in body or ""), chars),
        "body_quality": row.get("body_quality"),
        "simhash": simhash(body),
        "has_author": bool(row.get("author")),
        "has_origin": bool(row.get("origin")),
        "time_confidence": row.get("time_confidence"),
        "age_hours": _age_hours(row),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _age_hours(row: Row) -> float | None:
    """Hours from publishing to collecting."""
    published = row.get("publish_time")
    return round((row["collect_time"] - published).total_seconds() / 3600, 2) if published else None


def articles_current(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `feature.articles_current`: the newest revision of each page of one source, over all its days."""
    pages: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        pages.setdefault((row["source"], row["canonical_fp"]), []).append(row)
    return [_current(revisions) for _, revisions in sorted(pages.items())]


def _current(revisions: list[Row]) -> dict[str, Any]:
    ordered = sorted(revisions, key=lambda row: (row["collect_time"], row["fetch_id"]))
    newest = ordered[-1]
    contents = [row["content_hash"] for row in ordered]
    changes = sum(1 for old, new in zip(contents, contents[1:], strict=False) if old != new)
    return {
        **newest,
        "first_seen": ordered[0]["collect_time"],
        "last_seen": newest["collect_time"],
        "sightings": len(ordered),
        "revisions": changes + 1,
    }


def source_daily(key: Row, outcomes: Iterable[Row], rows: Iterable[Row], rejects: Iterable[Row] = ()) -> dict[str, Any]:
    """The row of `feature.source_daily` for one source, dt and schema version (`key`)."""
    entries = list(outcomes)
    clean = list(rows)
    counts = Counter(str(entry["outcome"]) for entry in entries)
    qualities = [row["body_quality"] for row in clean if row.get("body_quality") is not None]
    lengths = [row["body_chars"] for row in clean if row.get("body_chars") is not None]
    return {
        **{name: key[name] for name in KEYS},
        "fetches": len(entries),
        **{outcome.value: counts[outcome.value] for outcome in Outcome},
        "rows": len(clean),
        "rejects": sum(1 for _ in rejects),
        "mean_body_quality": round(sum(qualities) / len(qualities), 4) if qualities else None,
        "mean_body_chars": round(sum(lengths) / len(lengths), 1) if lengths else None,
        "with_time": sum(1 for row in clean if row.get("publish_time") is not None),
    }
