"""The stored pages of a day, read with their hash checked and parsed, over all cores where there are many.

The network is not touched: pages come from the object store alone.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any, Self
from zoneinfo import ZoneInfo

from lakehouse.errors import DataError, SnapshotCorrupt, UnknownNameError
from lakehouse.model.record import Page, Parsed
from lakehouse.parse import GENERIC_VERSION, parse_page
from lakehouse.snapshots.bodies import read_body
from lakehouse.snapshots.objects import ObjectStore
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.template import TemplateSpec

PARALLEL_FROM = 300
CHUNK = 32
READERS = 8

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParseJob:
    """How the pages of one source are parsed; crosses to worker processes."""

    template: TemplateSpec | None
    zone: ZoneInfo
    language: str | None

    @property
    def template_name(self) -> tuple[str, int]:
        """Name and version as the rows carry them."""
        if self.template is None:
            return f"generic@{GENERIC_VERSION}", GENERIC_VERSION
        return self.template.ref, self.template.version


def is_parsed(row: Row) -> bool:
    """Whether a fetch gave a page to parse: no listing, nothing failed or limited, and a body is kept."""
    return (
        row["kind"] != "list"
        and row["error"] is None
        and row["limited"] is None
        and row["status"] != 304
        and (row["rendered_key"] or row["snap_key"]) is not None
    )


class PageParser:
    """Reads and parses pages; holds a process pool while open if `pages` are many enough to pay for its start."""

    def __init__(self, store: ObjectStore, pages: int, cores: int | None = None) -> None:
        self._store = store
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pages")
        self._workers = min(cores or os.cpu_count() or 1, pages // CHUNK)
        parallel = pages >= PARALLEL_FROM and self._workers > 1
        self._pool = self._new_pool() if parallel else None

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def parse(self, rows: Sequence[Row], entries: Mapping[str, Mapping[str, str]], job: ParseJob) -> Iterator[Parsed]:
        """One Parsed a row, in order; `entries` maps `url_fp` to what the lists said of the page.

        A body that is not in the store gives `snapshot_missing`, one that does not match its hash `snapshot_corrupt`.
        Raises DataError if a page kills the process that parses it; the next call starts with fresh processes.
        """
        try:
            yield from self._parse(rows, entries, job)
        except BrokenProcessPool:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = self._new_pool()
            raise DataError(
                f"a process that parsed {len(rows)} pages with {job.template_name[0]} died; nothing of their day was "
                "replaced. If it was not killed for its memory, find the page with `lakehouse extract` and report it"
            ) from None

    def _parse(self, rows: Sequence[Row], entries: Mapping[str, Mapping[str, str]], job: ParseJob) -> Iterator[Parsed]:
        waiting: deque[Future[list[Parsed]]] = deque()
        for chunk in _chunks(rows):
            pages = list(self._readers.map(partial(self._load, entries=entries, job=job), chunk))
            if self._pool is None:
                yield from parse_chunk(pages, job)
                continue
            waiting.append(self._pool.submit(parse_chunk, pages, job))
            if len(waiting) > 2 * self._workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def _load(self, row: Row, entries: Mapping[str, Mapping[str, str]], job: ParseJob) -> Page | Parsed:
        name, version = job.template_name
        try:
            return load_page(self._store, row, entries.get(row["url_fp"], {}))
        except UnknownNameError as error:
            return Parsed({}, {}, name, version, problem="snapshot_missing", detail=str(error))
        except SnapshotCorrupt as error:
            return Parsed({}, {}, name, version, problem="snapshot_corrupt", detail=str(error))


def load_page(store: ObjectStore, row: Row, entry: Mapping[str, str]) -> Page:
    """The page of a row of `raw.fetches`: the rendered DOM where there is one, else the body as served.

    Raises UnknownNameError for a body that is not stored and SnapshotCorrupt for one that does not match its hash.
    """
    rendered = row["rendered_key"] is not None
    key = row["rendered_key"] if rendered else row["snap_key"]
    sha256 = row["rendered_sha256"] if rendered else row["content_sha256"]
    return Page(
        body=read_body(store, key, sha256),
        url=row["final_url"] or row["url"],
        collect_time=row["collect_time"],
        charset="utf-8" if rendered else row["charset"],
        media_type="text/html" if rendered else row["media_type"],
        entry=dict(entry),
    )


def parse_chunk(pages: Sequence[Page | Parsed], job: ParseJob) -> list[Parsed]:
    """Parse pages in order; what could not be read passes through."""
    return [
        page if isinstance(page, Parsed) else parse_page(page, job.template, zone=job.zone, language=job.language)
        for page in pages
    ]


def parse_job(source: SourceSpec, template: TemplateSpec | None, business_zone: ZoneInfo) -> ParseJob:
    """How a source's pages are parsed: times on pages are in the source's zone, the business zone by default."""
    return ParseJob(template, ZoneInfo(source.page_tz) if source.page_tz else business_zone, source.language)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
