"""Object keys. No text of a URL ever becomes part of a key."""

from __future__ import annotations

import re
from datetime import date

from lakehouse.errors import InvariantError
from lakehouse.model.fetch import Fetch

SERVED = "served"
RENDERED = "rendered"
SUFFIXES = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "text/plain": "txt",
    "text/csv": "csv",
    "application/pdf": "pdf",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
}
SEGMENT = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,254}")
MAX_KEY = 1000


def snapshot_key(fetch: Fetch, part: str) -> str:
    """`snap/<source>/<YYYY>/<MM>/<DD>/<url_fp>-<fetch_id>-<part>.<suffix>.zst`; `part` is served or rendered."""
    media_type = "text/html" if part == RENDERED else (fetch.media_type or "").lower()
    name = f"{fetch.url_fp}-{fetch.fetch_id}-{part}.{SUFFIXES.get(media_type, 'bin')}.zst"
    return checked_key(f"snap/{fetch.source}/{fetch.dt:%Y/%m/%d}/{name}")


def batch_key(source: str, dt: date, batch_id: str) -> str:
    """`batch/<source>/<YYYY>/<MM>/<DD>/<batch_id>.json.zst`."""
    return checked_key(f"batch/{source}/{dt:%Y/%m/%d}/{batch_id}.json.zst")


def checked_key(key: str) -> str:
    """`key` itself; raises InvariantError for one that could leave a store's folder or that a store cannot hold."""
    if len(key) > MAX_KEY or not all(SEGMENT.fullmatch(segment) for segment in key.split("/")):
        raise InvariantError(
            f"object key {key[:200]!r} is not allowed; keys are segments of letters, digits and ._=- that start with "
            "no dot, joined by /"
        )
    return key
