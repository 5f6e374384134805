"""What the site answers to one request."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import Protocol

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, body and headers.

    `promised` is a Content-Length that the body does not keep; the server then hangs up.
    """

    body: bytes
    status: int = 200
    media_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    promised: int | None = None


class Replies(Protocol):
    """A site: the invented town, or stored real pages in tests."""

    def reply(self, target: str, *, counts: bool = True) -> Reply:
        """The reply to a path with query; `counts` False (a HEAD request) changes nothing."""
        ...

    def reset(self) -> None:
        """Forget what was read."""
        ...


def html_reply(text: str, status: int = 200) -> Reply:
    """A page in UTF-8."""
    return Reply(text.encode("utf-8"), status)


def gzip_reply(body: bytes) -> Reply:
    """A body that is gzip on the wire."""
    return Reply(gzip.compress(body, mtime=0), headers=(("Content-Encoding", "gzip"),))


def redirect(location: str) -> Reply:
    """A temporary redirect."""
    return Reply(b"", 302, headers=(("Location", location),))
