"""The client seam: httpx for pages that are served whole, Playwright for pages that a browser must make."""

from __future__ import annotations

from typing import Protocol

from lakehouse import __version__
from lakehouse.model.fetch import Request, Response
from lakehouse.specs.source import Limits

PRODUCT = "crawl-lakehouse"
USER_AGENT = f"Mozilla/5.0 (compatible; {PRODUCT}/{__version__})"


class FetchClient(Protocol):
    """Makes one exchange, redirects included. Not shared between threads."""

    name: str

    def fetch(self, request: Request, limits: Limits) -> Response:
        """The answer to `request`, whatever its status; raises FetchError, or FetchRefused for what may not be."""

    def close(self) -> None:
        """Close connections, or the browser."""
