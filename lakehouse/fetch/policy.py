"""What may be asked of a site, and what follows from an answer. Pure: no clock, no network, no database."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote_plus

from lakehouse.errors import FetchRefused
from lakehouse.fetch.limited import RATE_LIMITED
from lakehouse.ledger.tasks import TaskState
from lakehouse.logs import BLANK, SECRET_KEY, blank_secrets
from lakehouse.model.fetch import Fetch
from lakehouse.model.urls import registrable_domain, split_url
from lakehouse.specs.source import Limits, SourceSpec

# robots.txt that cannot be read now; one that forbids is refused, and what is refused is never tried again.
ROBOTS_LATER = "robots_disallowed"
TRY_AGAIN = frozenset({"connect_failed", "timeout", "tls_failed", "protocol_error", "browser_failed", ROBOTS_LATER})
STATUS_TRY_AGAIN = frozenset({408, 425, 500, 502, 503, 504})
LONGEST_RETRY_AFTER_S = 86_400.0
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def check_url(url: str, source: SourceSpec) -> None:
    """Raise FetchRefused unless `url` is a http(s) URL on a host that `source` allows."""
    try:
        _, host, _, _, _, _ = split_url(url)
    except ValueError as error:
        raise FetchRefused("scheme_refused", f"refused: {error}") from None
    if not host_allowed(host, source.allowed_hosts):
        raise FetchRefused(
            "host_refused",
            f"refused host {host}: source {source.source} allows {', '.join(source.allowed_hosts)}; add it to "
            "allowed_hosts if it belongs to the source",
        )


def host_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether `host` is one of `allowed` or below one of them; an empty list allows all."""
    names = [name.lower().removeprefix("*.") for name in allowed]
    return not names or any(host == name or host.endswith("." + name) for name in names)


def check_address(address: str, host: str, source: SourceSpec) -> None:
    """Raise FetchRefused unless `source` may connect to `address` (what `host` resolved to)."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if source.allow_private and not ip.is_multicast:
        return
    if not is_public(ip):
        raise FetchRefused(
            "address_refused",
            f"refused {host}: it resolves to {address}, which is not a public address; set allow_private on source "
            f"{source.source} if it really lives in your own network",
        )


def is_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to the public internet, judged by the IPv4 address inside where there is one."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if ip.is_site_local:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_link_local)


def slot_name(url: str) -> str:
    """What shares one rate limit: the registrable domain; host and port for an address or a local name."""
    scheme, host, port, _, _, _ = split_url(url)
    bare = host.strip("[]").rstrip(".")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        if "." in bare:
            return registrable_domain(url)
    return f"{host}:{port or ('443' if scheme == 'https' else '80')}"


def blank_url(url: str, secret_params: tuple[str, ...]) -> str:
    """`url` as it may be stored: credentials and the declared secret parameters blanked, all else untouched."""
    secret = {name.lower() for name in secret_params}
    url = re.sub(r"(?<=//)[^/?#\s]*@", f"{BLANK}@", url, count=1)
    if not secret or "?" not in url:
        return url
    base, _, rest = url.partition("?")
    query, mark, fragment = rest.partition("#")
    return f"{base}?{_blank_query(query, secret)}{mark}{fragment}"


def blank_headers(headers: Mapping[str, str], secret_params: tuple[str, ...]) -> dict[str, str]:
    """Headers as they may be stored: names in lower case, secrets blanked, URLs in them as `blank_url` leaves them."""
    kept = {}
    for name, value in headers.items():
        blanked = BLANK if SECRET_KEY.search(name) or name.lower().endswith("-key") else value
        if "://" in blanked or blanked.startswith("/"):
            blanked = blank_secrets(blank_url(blanked, secret_params))
        kept[name.lower()] = blanked
    return kept


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a task goes on after an attempt; `wait_s` for a retry; `hold_s`: how long the whole domain is left alone."""

    state: TaskState
    reason: str | None = None
    wait_s: float = 0.0
    hold_s: float = 0.0


def judge(fetch: Fetch, limits: Limits, *, may_retry: bool, now: datetime) -> Verdict:
    """What follows from an exchange: done, failed with a reason, or pending again after a pause."""
    reason = fetch.limited or fetch.error
    if reason is None:
        return Verdict(TaskState.DONE)
    shown = f"{reason} {fetch.status}" if fetch.status is not None and fetch.status != 200 else reason
    pause = retry_after(fetch.response_headers, now) if fetch.status in {429, 503} else 0.0
    if not may_retry or fetch.attempt >= limits.attempts or not _worth_another_try(fetch):
        return Verdict(TaskState.FAILED, shown, hold_s=pause)
    backoff = limits.backoff[min(fetch.attempt, len(limits.backoff)) - 1] if limits.backoff else 0.0
    return Verdict(TaskState.PENDING, shown, wait_s=max(backoff, pause), hold_s=pause)


def retry_after(headers: Mapping[str, str], now: datetime) -> float:
    """Seconds that a site asks to be left alone (at most a day); 0 where it says nothing that can be read."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return 0.0
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return min(max((at - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER_S)


def _worth_another_try(fetch: Fetch) -> bool:
    if fetch.limited is not None:
        return fetch.limited == RATE_LIMITED
    return fetch.error in TRY_AGAIN or (fetch.error == "http_error" and fetch.status in STATUS_TRY_AGAIN)


def _blank_query(query: str, secret: set[str]) -> str:
    parts = []
    for part in query.split("&"):
        name, equals, _ = part.partition("=")
        parts.append(f"{name}={BLANK}" if equals and unquote_plus(name).lower() in secret else part)
    return "&".join(parts)
