"""One source and day: every fetch gets one outcome, every parsed page a row or a reject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from lakehouse.clean.checks import judge_row
from lakehouse.clean.dedup import content_hash, split_duplicates
from lakehouse.clean.language import language_of
from lakehouse.clean.quality import body_quality, count_chars, count_paragraphs
from lakehouse.clean.text import clean_value
from lakehouse.model.fetch import FetchKind
from lakehouse.model.record import Action, CleanDay, Outcome, OutcomeRow, Parsed, Reject
from lakehouse.specs.checks import ChecksSpec, UrlRules
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.urls import canonical_fp

LISTING_KINDS = frozenset({FetchKind.LIST, FetchKind.API, FetchKind.FEED})
NOT_MODIFIED = 304
FIRST_ERROR = 400


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A row of `raw.fetches` by column name, and what its page said; `parsed` is None where nothing was to parse."""

    fetch: Mapping[str, Any]
    parsed: Parsed | None


def clean_day(
    source: SourceSpec,
    dt: date,
    pages: Iterable[FetchedPage],
    checks: ChecksSpec,
    url_rules: UrlRules,
    schema_version: int,
) -> CleanDay:
    """Rows of `clean.<dataset>`, rejects and exactly one outcome a fetch, each sorted; order of `pages` is nothing."""
    outcomes: dict[str, OutcomeRow] = {}
    rejects: list[Reject] = []
    passed: dict[Outcome, list[Mapping[str, Any]]] = {Outcome.CLEAN: [], Outcome.IN_REVIEW: []}
    reviews: dict[str, Reject] = {}
    for page in _unique(pages):
        fetch_id = page.fetch["fetch_id"]
        settled = _outcome_without_page(page)
        if settled is not None:
            outcomes[fetch_id] = settled
            continue
        problem = _parse_reject(page)
        if problem is not None:
            rejects.append(problem)
            outcomes[fetch_id] = OutcomeRow(fetch_id, Outcome.REJECTED, problem.reason, 0)
            continue
        row = _row(source, dt, page, url_rules, schema_version)
        verdict = judge_row(row, checks)
        row = {**row, "flags": list(verdict.flags)}
        if verdict.action is None:
            passed[Outcome.CLEAN].append(row)
            continue
        reject = reject_of(row, "check", verdict.action, str(verdict.reason), str(verdict.detail))
        if verdict.action is Action.REVIEW:
            passed[Outcome.IN_REVIEW].append(row)
            reviews[fetch_id] = reject
        else:
            rejects.append(reject)
            outcomes[fetch_id] = OutcomeRow(fetch_id, Outcome.REJECTED, reject.reason, 0)
    rows = _settle(passed, reviews, rejects, outcomes)
    return CleanDay(
        source.source,
        dt,
        tuple(sorted(rows, key=row_order)),
        tuple(sorted(rejects, key=lambda reject: reject.fetch_id)),
        tuple(outcomes[fetch_id] for fetch_id in sorted(outcomes)),
    )


def row_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort key of clean rows: publish time descending (unknown last), then `url_fp`, then fetch."""
    published = row.get("publish_time")
    newest = -published.timestamp() if isinstance(published, datetime) else float("inf")
    return newest, row["url_fp"], row["fetch_id"]


def _unique(pages: Iterable[FetchedPage]) -> list[FetchedPage]:
    """One page a fetch id, in the order of ids."""
    found: dict[str, FetchedPage] = {}
    for page in pages:
        found.setdefault(page.fetch["fetch_id"], page)
    return [found[fetch_id] for fetch_id in sorted(found)]


def _settle(
    passed: Mapping[Outcome, list[Mapping[str, Any]]],
    reviews: Mapping[str, Reject],
    rejects: list[Reject],
    outcomes: dict[str, OutcomeRow],
) -> list[Mapping[str, Any]]:
    """Take duplicates out, enter what is left in the books, and return the clean rows."""
    clean: list[Mapping[str, Any]] = []
    for outcome, rows in passed.items():
        kept, others = split_duplicates(rows)
        for row, first in others:
            reject = reject_of(row, "dedup", Action.DROP, "duplicate_in_partition", f"same page as fetch {first}")
            rejects.append(reject)
            outcomes[row["fetch_id"]] = OutcomeRow(row["fetch_id"], Outcome.DUPLICATE, reject.reason, 0)
        for row in kept:
            fetch_id = row["fetch_id"]
            if outcome is Outcome.CLEAN:
                clean.append(row)
                outcomes[fetch_id] = OutcomeRow(fetch_id, outcome, None, 1)
            else:
                rejects.append(reviews[fetch_id])
                outcomes[fetch_id] = OutcomeRow(fetch_id, outcome, reviews[fetch_id].reason, 0)
    return clean


def _outcome_without_page(page: FetchedPage) -> OutcomeRow | None:
    """The outcome of a fetch that gave nothing to parse, or None."""
    fetch = page.fetch
    fetch_id, status = fetch["fetch_id"], fetch.get("status")
    if status == NOT_MODIFIED:
        return OutcomeRow(fetch_id, Outcome.NOT_MODIFIED, None, 0)
    if fetch.get("error"):
        return OutcomeRow(fetch_id, Outcome.FAILED, fetch["error"], 0)
    if fetch.get("limited"):
        return OutcomeRow(fetch_id, Outcome.LIMITED, fetch["limited"], 0)
    if page.parsed is None and fetch["kind"] in LISTING_KINDS:
        return OutcomeRow(fetch_id, Outcome.LISTING, None, 0)
    if page.parsed is None and status is not None and status >= FIRST_ERROR:
        return OutcomeRow(fetch_id, Outcome.FAILED, "http_error", 0)
    return None


def _parse_reject(page: FetchedPage) -> Reject | None:
    """The reject of a page that could not be read or parsed, or None."""
    parsed = page.parsed
    if parsed is None:
        parsed = Parsed({}, {}, "generic", 0, "snapshot_missing", "no stored page came with this fetch")
    if parsed.problem is None:
        return None
    row = {**_evidence_frame(page.fetch, parsed), **parsed.values}
    return reject_of(row, "parse", Action.REJECT, parsed.problem, parsed.detail or "")


def _evidence_frame(fetch: Mapping[str, Any], parsed: Parsed) -> dict[str, Any]:
    return {
        "url": fetch["url"],
        "url_fp": fetch["url_fp"],
        "fetch_id": fetch["fetch_id"],
        "task_id": fetch["task_id"],
        "template": parsed.template,
        "template_version": parsed.template_version,
        "collect_time": fetch["collect_time"],
        "snap_key": fetch.get("snap_key"),
    }


def _row(source: SourceSpec, dt: date, page: FetchedPage, url_rules: UrlRules, schema_version: int) -> dict[str, Any]:
    """The whole row of a parsed page, before the checks; times in UTC."""
    assert page.parsed is not None
    fetch = page.fetch
    values = {name: _stored(clean_value(name, value)) for name, value in page.parsed.values.items()}
    hashed = content_hash(values)
    if "body" in values:
        body = values["body"]
        values["body_chars"] = count_chars(body)
        values["body_quality"] = body_quality(body)
        values["paragraphs"] = count_paragraphs(body)
        values["language"] = language_of(f"{values.get('title') or ''}\n{body or ''}") or source.language
    return {
        "source": source.source,
        "dt": dt,
        "schema_version": schema_version,
        "canonical_fp": canonical_fp(fetch["url"], url_rules),
        "url_rules_version": url_rules.version,
        "content_hash": hashed,
        **values,
        "tags": sorted(set(source.tags)),
        "flags": [],
        **_evidence_frame(fetch, page.parsed),
    }


def _stored(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def reject_of(row: Mapping[str, Any], stage: str, action: Action, reason: str, detail: str) -> Reject:
    """The reject of a row, with its values ready for JSON."""
    return Reject(
        stage=stage,
        action=action,
        reason=reason,
        detail=detail,
        row={name: _json_ready(value) for name, value in row.items()},
        fetch_id=row["fetch_id"],
        url_fp=row["url_fp"],
        task_id=row["task_id"],
        template=row["template"],
        template_version=row["template_version"],
        collect_time=row["collect_time"],
        snap_key=row["snap_key"],
    )


def _json_ready(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_json_ready(item) for item in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return str(value)
