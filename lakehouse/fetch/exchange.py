"""From an answer, or the lack of one, to the row that is kept of it: charset, limits, and everything secret blanked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from lakehouse.errors import FetchError
from lakehouse.fetch.limited import RATE_LIMITED, recognise_limit
from lakehouse.fetch.policy import blank_headers, blank_url
from lakehouse.ledger.tasks import HeldTask
from lakehouse.model.fetch import Fetch, Response
from lakehouse.model.ids import new_fetch_id
from lakehouse.parse.charset import decode_page, is_binary
from lakehouse.specs.source import SourceSpec

MAY_BE_A_WALL = frozenset({401, 403, 429, 503})


@dataclass(frozen=True, slots=True)
class Observed:
    """One exchange: its row, the text to read lists from, the URL it was found at, and its bodies."""

    fetch: Fetch
    text: str = ""
    url: str = ""
    body: bytes | None = None
    rendered: bytes | None = None

    @property
    def worked(self) -> bool:
        """Whether the page may be read as what was asked for."""
        return self.fetch.error is None and self.fetch.limited is None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task: who makes it, with which client."""

    source: SourceSpec
    task: HeldTask
    worker_id: str
    fetcher: str

    def blank_fetch(self, now: datetime) -> Fetch:
        """The row before anything is known of the answer."""
        ask = self.task.ask
        stored = blank_url(ask.url, self.source.secret_params)
        return Fetch(
            fetch_id=new_fetch_id(now),
            source=ask.source,
            dt=ask.dt,
            task_id=self.task.task_id,
            worker_id=self.worker_id,
            kind=ask.kind,
            fetcher=self.fetcher,
            request_url=stored,
            url=stored,
            url_fp=ask.url_fp,
            attempt=self.task.attempts + 1,
            collect_time=now,
        )


def observe_failure(attempt: Attempt, error: FetchError, elapsed_ms: int, now: datetime) -> Observed:
    """The row of an exchange that gave no answer."""
    return Observed(replace(attempt.blank_fetch(now), error=error.reason, elapsed_ms=elapsed_ms))


def observe_response(attempt: Attempt, response: Response, now: datetime) -> Observed:
    """The row of an answer, whatever its status."""
    source = attempt.source
    media_type, header_charset = _content_type(response.headers.get("content-type", ""))
    text, charset, votes = _decoded(response, media_type, header_charset, source.charset)
    shown = response.rendered.decode("utf-8") if response.rendered is not None else text
    limited = _limit(shown, response, source)
    secrets = source.secret_params
    fetch = replace(
        attempt.blank_fetch(now),
        final_url=blank_url(response.url, secrets),
        redirects=tuple(blank_url(url, secrets) for url in response.redirects),
        remote_addr=response.remote_addr,
        status=response.status,
        error=None if limited is not None or _is_good(response.status) else "http_error",
        limited=limited,
        request_headers=blank_headers(response.request_headers, secrets),
        response_headers=blank_headers(response.headers, secrets),
        media_type=media_type,
        charset=charset,
        charset_votes=votes,
        elapsed_ms=response.elapsed_ms,
        body_bytes=len(response.body),
        content_sha256=hashlib.sha256(response.body).hexdigest(),
        rendered_sha256=None if response.rendered is None else hashlib.sha256(response.rendered).hexdigest(),
    )
    return Observed(fetch, shown, response.url, response.body, response.rendered)


def _limit(shown: str, response: Response, source: SourceSpec) -> str | None:
    if response.status == 503 and "retry-after" in response.headers:
        return RATE_LIMITED
    if 200 <= response.status < 300 or response.status in MAY_BE_A_WALL:
        return recognise_limit(shown, response.status, source)
    return None


def _is_good(status: int) -> bool:
    return 200 <= status < 300 or status == 304


def _content_type(value: str) -> tuple[str | None, str | None]:
    media_type, _, rest = value.partition(";")
    charset = None
    for part in rest.split(";"):
        name, _, label = part.partition("=")
        if name.strip().lower() == "charset" and label.strip():
            charset = label.strip().strip("\"'")
    return media_type.strip().lower()[:100] or None, charset


def _decoded(
    response: Response, media_type: str | None, header_charset: str | None, declared: str | None
) -> tuple[str, str | None, dict[str, str]]:
    if not response.body or is_binary(response.body, media_type):
        return "", None, {}
    return decode_page(response.body, header_charset, declared)
