"""One exchange with a site, as it is stored in `raw.fetches`, and the work that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum


class FetchKind(StrEnum):
    """What was asked for."""

    LIST = "list"
    DETAIL = "detail"
    API = "api"
    FEED = "feed"
    FILE = "file"


FETCH_REASONS = (
    "connect_failed",
    "timeout",
    "tls_failed",
    "http_error",
    "too_large",
    "too_many_redirects",
    "bad_encoding",
    "robots_disallowed",
    "address_refused",
    "host_refused",
    "scheme_refused",
    "browser_failed",
    "protocol_error",
)


@dataclass(frozen=True, slots=True)
class Request:
    """What to fetch. Header names are lower case; values never hold secrets that must not be stored.

    `wait_for` is a CSS selector that a browser waits for; other clients have nothing to wait for.
    """

    url: str
    kind: FetchKind
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_for: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What came back. `body` is decompressed; `rendered` is the DOM of a browser as UTF-8, else None."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...] = ()
    remote_addr: str | None = None
    elapsed_ms: int = 0
    rendered: bytes | None = None
    request_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fetch:
    """One row of `raw.fetches`: an exchange with its metadata, whether it worked or not.

    `limited` names why a page counts as "slow down" (`captcha`, `login_wall`, `empty_shell`, `rate_limited`), or None.
    `snap_key` and `rendered_key` are None until the bodies are stored, and stay None where none is kept.
    """

    fetch_id: str
    source: str
    dt: date
    task_id: str
    worker_id: str
    kind: FetchKind
    fetcher: str
    request_url: str
    url: str
    url_fp: str
    attempt: int
    collect_time: datetime
    final_url: str | None = None
    redirects: tuple[str, ...] = ()
    remote_addr: str | None = None
    status: int | None = None
    error: str | None = None
    limited: str | None = None
    request_headers: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str | None = None
    charset: str | None = None
    charset_votes: Mapping[str, str] = field(default_factory=dict)
    elapsed_ms: int | None = None
    body_bytes: int | None = None
    content_sha256: str | None = None
    snap_key: str | None = None
    rendered_sha256: str | None = None
    rendered_key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of `raw.entries`: a link found on a list page. `entry` holds what the list said of it (title, date…)."""

    source: str
    dt: date
    task_id: str
    list_url_fp: str
    page_no: int
    position: int
    url: str
    url_fp: str
    entry: Mapping[str, str]
    collect_time: datetime


@dataclass(frozen=True, slots=True)
class EndedTask:
    """One row of `raw.tasks`: a task that ended, with its history (`[{at, state, worker, reason}, …]`)."""

    source: str
    dt: date
    task_id: str
    parent_task_id: str | None
    name: str
    kind: FetchKind
    url: str
    url_fp: str
    state: str
    reason: str | None
    attempts: int
    worker_id: str | None
    history: tuple[Mapping[str, str], ...]
    created_at: datetime
    ended_at: datetime
