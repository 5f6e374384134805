"""robots.txt, per RFC 9309: kept a day per host; a site that cannot say yes for now means no for now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from protego import Protego

from lakehouse.errors import FetchError, FetchRefused
from lakehouse.fetch.client import PRODUCT, FetchClient
from lakehouse.model.fetch import FetchKind, Request
from lakehouse.specs.source import Limits

KEEP_S = 86_400.0
KEEP_FAILURE_S = 5.0
MAX_BYTES = 1_000_000
ALLOW_ALL = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one host allows; `failure` says why nothing may be asked for now."""

    until: float
    parsed: Protego | None = None
    failure: str | None = None


class Robots:
    """The rules of hosts, asked for through `client` when first needed."""

    def __init__(self, client: FetchClient, limits: Limits) -> None:
        self._client = client
        self._limits = limits.model_copy(update={"max_body_bytes": MAX_BYTES, "max_redirects": 5})
        self._rules: dict[str, Rules] = {}

    def check(self, url: str) -> float:
        """Raise unless `url` may be asked for; gives the pause in seconds that the host wants (0 if it says none).

        FetchRefused when the rules forbid it; a plain FetchError when they cannot be had now, which is worth a retry.
        """
        rules = self._of_host(url)
        if rules.parsed is None:
            raise FetchError("robots_disallowed", f"robots.txt cannot be read now: {rules.failure}")
        if not rules.parsed.can_fetch(url, PRODUCT):
            raise FetchRefused(
                "robots_disallowed", "robots.txt forbids this page; set robots: false only if the site agreed"
            )
        return float(rules.parsed.crawl_delay(PRODUCT) or 0.0)

    def _of_host(self, url: str) -> Rules:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        known = self._rules.get(origin)
        if known is None or known.until < time.monotonic():
            known = self._rules[origin] = self._ask(origin)
        return known

    def _ask(self, origin: str) -> Rules:
        try:
            response = self._client.fetch(Request(f"{origin}/robots.txt", FetchKind.FILE), self._limits)
        except FetchError as error:
            if error.reason == "too_many_redirects":
                return _rules(ALLOW_ALL)
            return Rules(time.monotonic() + KEEP_FAILURE_S, failure=f"{error.reason} for {origin}/robots.txt")
        if response.status == 429 or response.status >= 500:
            return Rules(time.monotonic() + KEEP_FAILURE_S, failure=f"{origin}/robots.txt answers {response.status}")
        if response.status >= 300:
            return _rules(ALLOW_ALL)
        return _rules(response.body.decode("utf-8", errors="replace"))


def _rules(text: str) -> Rules:
    return Rules(time.monotonic() + KEEP_S, parsed=Protego.parse(text.removeprefix("\ufeff")))
