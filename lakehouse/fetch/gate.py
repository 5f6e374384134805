"""Politeness before every request: robots.txt, then the domain's shared rate limit."""

from __future__ import annotations

from collections.abc import Callable

from lakehouse.fetch.http import HttpClient
from lakehouse.fetch.policy import slot_name
from lakehouse.fetch.report import CollectorDeps
from lakehouse.fetch.robots import Robots
from lakehouse.ledger.slots import wait_for_slot
from lakehouse.specs.source import SourceSpec


class Gate:
    """Waits or refuses before a request of one source; `after_wait()` is called when it had to wait."""

    def __init__(self, source: SourceSpec, deps: CollectorDeps, after_wait: Callable[[], None]) -> None:
        self._source = source
        self._deps = deps
        self._after_wait = after_wait
        # A host's robots.txt may live on a host that the source does not list.
        anywhere = source.model_copy(update={"allowed_hosts": ()})
        self._client = HttpClient(anywhere, max_body_bytes=deps.max_body_bytes, before_hop=self._take_slot)
        self._robots = Robots(self._client, source.limits) if source.robots else None

    def before_hop(self, url: str) -> None:
        """Return when `url` may be asked for; raises FetchError when robots.txt says no or cannot be read."""
        pause = 0.0 if self._robots is None else self._robots.check(url)
        self._take_slot(url, pause)

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _take_slot(self, url: str, pause: float = 0.0) -> None:
        interval = max(self._source.limits.interval, pause)
        if wait_for_slot(self._deps.ledger, slot_name(url), interval) > 1.0:
            self._after_wait()
