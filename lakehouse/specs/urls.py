"""Which URLs name one page: the canonical form follows the rules of `catalog/url_rules.yaml`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakehouse.model.urls import (
    DEFAULT_PORTS,
    checked_length,
    fingerprint,
    join_url,
    split_url,
    without_dots,
)
from lakehouse.specs.checks import UrlRules

if TYPE_CHECKING:
    from lakehouse.specs.source import SourceSpec


def canonical_form(url: str, rules: UrlRules) -> str:
    """The form that all URLs of one page share under `rules`; raises ValueError as `model.urls.normal_form`.

    Always drops an empty query, empty parts of a query, and the dot after a host name. The scheme becomes https where
    `one_scheme` holds.
    """
    scheme, host, port, path, query, fragment = split_url(url)
    host = host.rstrip(".")
    if rules.drop_www:
        host = _without_www(host)
    if rules.one_scheme:
        scheme, port = "https", "" if port == DEFAULT_PORTS["https"] else port
    path = _canonical_path(path, rules)
    kept = [part for part in (query or "").split("&") if part and not _is_dropped(part, rules)]
    form = join_url(scheme, host, port, path, "&".join(kept) or None)
    return checked_length(form if rules.drop_fragment or not fragment else f"{form}#{fragment}", url)


def canonical_fp(url: str, rules: UrlRules) -> str:
    """32 hex characters: the first 16 bytes of the sha256 of the canonical form; raises ValueError for a bad URL."""
    return fingerprint(canonical_form(url, rules))


def allows_host(source: SourceSpec, host: str) -> bool:
    """Whether `source` may reach `host` (in normal form): `allowed_hosts` and their subdomains, all without any."""
    hosts = source.allowed_hosts
    return not hosts or any(host == name or host.endswith(f".{name}") for name in hosts)


def _without_www(host: str) -> str:
    while host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return host


def _canonical_path(path: str, rules: UrlRules) -> str:
    if ";" in path:
        segments = []
        for segment in path.split("/"):
            name, *params = segment.split(";")
            segments.append(";".join([name, *(p for p in params if not _is_dropped(p, rules))]))
        path = without_dots("/".join(segments))
    if rules.drop_trailing_slash:
        path = path.rstrip("/")
    return path or "/"


def _is_dropped(part: str, rules: UrlRules) -> bool:
    exact, beginnings = _patterns(rules.drop_params)
    name = unquote(part.partition("=")[0]).lower()
    return name in exact or name.startswith(beginnings)


@lru_cache(maxsize=16)
def _patterns(drop_params: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    exact = frozenset(name.lower() for name in drop_params if not name.endswith("*"))
    return exact, tuple(name[:-1].lower() for name in drop_params if name.endswith("*"))
