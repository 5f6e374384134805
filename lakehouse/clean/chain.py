"""One source and day: every fetch gets one outcome, every parsed page a row or a reject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from lakehouse.clean.checks import judge_row
from lakehouse.clean.dedup import split_duplicates
from lakehouse.clean.rows import Row, RowMaker, evidence_of, reject_of
from lakehouse.model.fetch import FetchKind
from lakehouse.model.record import Action, CleanDay, Outcome, OutcomeRow, Parsed, Reject
from lakehouse.specs.checks import ChecksSpec, UrlRules
from lakehouse.specs.source import SourceSpec

LISTING_KINDS = frozenset({FetchKind.LIST, FetchKind.API, FetchKind.FEED})
NOT_MODIFIED = 304
FIRST_ERROR = 400


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A row of `raw.fetches` by column name, and what its page said; `parsed` is None where nothing was to parse."""

    fetch: Mapping[str, Any]
    parsed: Parsed | None


@dataclass(slots=True)
class _Books:
    """What became of each fetch so far. Rows that passed or wait for a person may still turn out to be duplicates."""

    outcomes: dict[str, OutcomeRow] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    passed: list[Row] = field(default_factory=list)
    reviewed: list[Row] = field(default_factory=list)
    reviews: dict[str, Reject] = field(default_factory=dict)

    def enter(self, fetch_id: str, outcome: Outcome, reason: str | None, rows_out: int = 0) -> None:
        self.outcomes[fetch_id] = OutcomeRow(fetch_id, outcome, reason, rows_out)

    def enter_reject(self, reject: Reject, outcome: Outcome) -> None:
        self.rejects.append(reject)
        self.enter(reject.fetch_id, outcome, reject.reason)


def clean_day(  # noqa: PLR0917
    source: SourceSpec,
    dt: date,
    pages: Iterable[FetchedPage],
    checks: ChecksSpec,
    url_rules: UrlRules,
    schema_version: int,
) -> CleanDay:
    """Rows of `clean.<dataset>`, rejects and exactly one outcome a fetch, each sorted.

    The same pages in any order give the same day. Of rows with the same `canonical_fp` and `content_hash` the earliest
    stays; the others have the outcome duplicate and a reject that names the kept fetch.
    """
    maker = RowMaker(source, dt, schema_version, url_rules)
    books = _Books()
    for page in _unique(pages):
        _enter_page(books, page, maker, checks)
    rows = _keep_first(books, books.passed)
    for row in rows:
        books.enter(row["fetch_id"], Outcome.CLEAN, None, 1)
    for row in _keep_first(books, books.reviewed):
        books.enter_reject(books.reviews[row["fetch_id"]], Outcome.IN_REVIEW)
    return CleanDay(
        source.source,
        dt,
        tuple(sorted(rows, key=row_order)),
        tuple(sorted(books.rejects, key=lambda reject: reject.fetch_id)),
        tuple(books.outcomes[fetch_id] for fetch_id in sorted(books.outcomes)),
    )


def row_order(row: Row) -> tuple[Any, ...]:
    """Sort key of clean rows: publish time descending (unknown last), then `url_fp`, then fetch."""
    published = row.get("publish_time")
    newest = -published.timestamp() if isinstance(published, datetime) else float("inf")
    return newest, row["url_fp"], row["fetch_id"]


def _unique(pages: Iterable[FetchedPage]) -> list[FetchedPage]:
    """One page a fetch id, in the order of ids: a fetch that came in two batches is one fetch."""
    found: dict[str, FetchedPage] = {}
    for page in sorted(pages, key=lambda page: (page.fetch["fetch_id"], page.fetch.get("batch_id") or "")):
        found.setdefault(page.fetch["fetch_id"], page)
    return list(found.values())


def _enter_page(books: _Books, page: FetchedPage, maker: RowMaker, checks: ChecksSpec) -> None:
    fetch = page.fetch
    settled = _outcome_without_page(page)
    if settled is not None:
        books.enter(fetch["fetch_id"], *settled)
        return
    parsed = page.parsed or Parsed(
        {}, {}, "none@0", 0, "snapshot_missing", "no stored page came with this fetch; collect it again"
    )
    if parsed.problem is not None:
        partial = {**parsed.values, **evidence_of(fetch, parsed)}
        reject = reject_of(partial, "parse", Action.REJECT, parsed.problem, parsed.detail or "")
        books.enter_reject(reject, Outcome.REJECTED)
        return
    row = maker.row_of(fetch, parsed)
    verdict = judge_row(row, checks)
    row["flags"] = list(verdict.flags)
    if verdict.action is None:
        books.passed.append(row)
        return
    reject = reject_of(row, "check", verdict.action, verdict.reason or "", verdict.detail or "")
    if verdict.action is Action.REVIEW:
        books.reviewed.append(row)
        books.reviews[reject.fetch_id] = reject
    else:
        books.enter_reject(reject, Outcome.REJECTED)


def _keep_first(books: _Books, rows: list[Row]) -> list[Row]:
    """The rows without their duplicates, which are entered."""
    kept, others = split_duplicates(rows)
    for row, first in others:
        detail = f"same page and content as fetch {first}"
        reject = reject_of(row, "dedup", Action.DROP, "duplicate_in_partition", detail)
        books.enter_reject(reject, Outcome.DUPLICATE)
    return kept


def _outcome_without_page(page: FetchedPage) -> tuple[Outcome, str | None] | None:
    """Outcome and reason of a fetch that gave nothing to parse, or None."""
    fetch = page.fetch
    status = fetch.get("status")
    if status == NOT_MODIFIED:
        return Outcome.NOT_MODIFIED, None
    if fetch.get("error"):
        return Outcome.FAILED, fetch["error"]
    if fetch.get("limited"):
        return Outcome.LIMITED, fetch["limited"]
    if page.parsed is None and fetch["kind"] in LISTING_KINDS:
        return Outcome.LISTING, None
    if page.parsed is None and status is not None and status >= FIRST_ERROR:
        return Outcome.FAILED, "http_error"
    return None
