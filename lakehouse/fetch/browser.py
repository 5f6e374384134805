"""Exchanges with a real browser: the served response and the DOM that scripts made of it.

Playwright's synchronous API belongs to one thread, so the browser lives in its own; its traffic leaves through the
guard proxy only.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Response as BrowserResponse
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from lakehouse.errors import ConfigError, FetchError, FetchRefused, UnavailableError
from lakehouse.fetch.client import USER_AGENT
from lakehouse.fetch.guard_proxy import GuardProxy
from lakehouse.fetch.policy import blank_url, check_address, check_url
from lakehouse.model.fetch import Request, Response
from lakehouse.specs.source import Limits, SourceSpec

KNOWN_PATHS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
ARGUMENTS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
SETTLE_S = 3.0
DOWNLOADS = 10


class BrowserClient:
    """One source's exchanges through Chromium, a fresh context each; see FetchClient."""

    name = "browser"

    def __init__(
        self,
        source: SourceSpec,
        *,
        max_body_bytes: int,
        before_hop: Callable[[str], None],
        path: str | None = None,
    ) -> None:
        self._source = source
        self._max_body_bytes = max_body_bytes
        self._before_hop = before_hop
        self._path = find_browser(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._proxy = GuardProxy(
            lambda address, host: check_address(address, host, source),
            connect_timeout=source.limits.connect_timeout,
            max_download=DOWNLOADS * max_body_bytes,
        )

    def fetch(self, request: Request, limits: Limits) -> Response:
        """The answer to `request` with the rendered DOM; see FetchClient."""
        check_url(request.url, self._source)
        self._before_hop(request.url)
        return self._thread.submit(self._fetch, request, limits).result()

    def close(self) -> None:
        """Close the browser and the proxy."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()
        self._proxy.close()

    def _fetch(self, request: Request, limits: Limits) -> Response:
        browser = self._running()
        started = time.monotonic()
        self._proxy.refused.clear()
        try:
            context = browser.new_context(
                user_agent=USER_AGENT, accept_downloads=False, service_workers="block", locale="zh-CN"
            )
            try:
                page = context.new_page()
                answer = self._open(page, request, limits, started + limits.total_timeout)
                return self._response(page, answer, limits, started)
            finally:
                with contextlib.suppress(PlaywrightError):
                    context.close()
        except PlaywrightTimeout as error:
            raise FetchError("timeout", f"no page in time from {self._shown(request.url)}") from error
        except PlaywrightError as error:
            raise self._named(error, request.url) from error

    def _open(self, page: Page, request: Request, limits: Limits, end: float) -> BrowserResponse:
        page.set_default_timeout(limits.read_timeout * 1000)
        first = min(limits.total_timeout, limits.connect_timeout + limits.read_timeout)
        answer = page.goto(request.url, timeout=first * 1000, wait_until="domcontentloaded")
        if answer is None:
            raise FetchError("browser_failed", f"the browser opened {self._shown(request.url)} without an answer")
        left = max(min(end - time.monotonic(), limits.read_timeout), 0.1)
        with contextlib.suppress(PlaywrightTimeout):
            if request.wait_for is not None:
                page.wait_for_selector(request.wait_for, state="attached", timeout=left * 1000)
            else:
                page.wait_for_load_state("networkidle", timeout=min(left, SETTLE_S) * 1000)
        return answer

    def _response(self, page: Page, answer: BrowserResponse, limits: Limits, started: float) -> Response:
        host = urlsplit(answer.url).hostname or ""
        if host in self._proxy.refused:
            raise self._proxy.refused[host]
        check_url(answer.url, self._source)
        limit = min(limits.max_body_bytes or self._max_body_bytes, self._max_body_bytes)
        body = answer.body()
        rendered = page.content().encode("utf-8", errors="replace")
        if max(len(body), len(rendered)) > limit:
            raise FetchRefused("too_large", f"refused a page over {limit} bytes")
        hops, before = [], answer.request.redirected_from
        while before is not None:
            hops.append(before.url)
            before = before.redirected_from
        return Response(
            url=answer.url,
            status=answer.status,
            headers=answer.all_headers(),
            body=body,
            redirects=tuple(reversed(hops)),
            remote_addr=self._proxy.addresses.get(host),
            elapsed_ms=round((time.monotonic() - started) * 1000),
            rendered=rendered,
            request_headers=answer.request.all_headers(),
        )

    def _running(self) -> Browser:
        if self._browser is not None and self._browser.is_connected():
            return self._browser
        self._stop()
        sandbox = () if os.geteuid() else ("--no-sandbox",)
        # "<-loopback>" makes the browser use the proxy for the loopback as well, which it would otherwise bypass.
        proxy: Any = {"server": self._proxy.address, "bypass": "<-loopback>"}
        try:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(
                executable_path=self._path, args=[*ARGUMENTS, *sandbox], proxy=proxy
            )
        except PlaywrightError as error:
            raise UnavailableError(f"browser {self._path} does not start: {_first_line(error)}") from error
        return self._browser

    def _stop(self) -> None:
        with contextlib.suppress(PlaywrightError):
            if self._browser is not None:
                self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()
        self._browser = self._playwright = None

    def _named(self, error: PlaywrightError, url: str) -> FetchError:
        refused = next(iter(self._proxy.refused.values()), None)
        if refused is not None:
            return refused
        text, shown = str(error), self._shown(url)
        if "ERR_TOO_MANY_REDIRECTS" in text:
            return FetchRefused("too_many_redirects", f"refused to follow the redirects of {shown}")
        if "ERR_CERT" in text or "ERR_SSL" in text:
            return FetchError("tls_failed", f"no trusted connection to {shown}: {_first_line(error)}")
        if "ERR_CONNECTION" in text or "ERR_TUNNEL" in text or "ERR_NAME" in text:
            return FetchError("connect_failed", f"cannot connect for {shown}: {_first_line(error)}")
        return FetchError("browser_failed", f"the browser could not open {shown}: {_first_line(error)}")

    def _shown(self, url: str) -> str:
        return blank_url(url, self._source.secret_params)


def find_browser(path: str | None) -> str:
    """The Chromium to start: `path`, a system one, or Playwright's own; raises ConfigError when there is none."""
    candidates = (path,) if path else KNOWN_PATHS
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return candidate
    if path is None:
        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
        if Path(own).is_file():
            return own
    looked = " or ".join(str(candidate) for candidate in candidates)
    raise ConfigError(f"no browser at {looked}; install chromium, or set LAKEHOUSE_BROWSER_PATH to one")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
