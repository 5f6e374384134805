"""List pages: which entries they link to, what they say of them, and where they go on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from w3lib.url import safe_url_string

from lakehouse.errors import ConfigError
from lakehouse.model.urls import url_fp
from lakehouse.specs.source import ListRules

MAX_TEXT = 2000
OTHER_SCHEMES = re.compile(r"^\s*(javascript|mailto|tel|data|about|blob|file|ftp|sms|weixin):", re.IGNORECASE)
LINE_ENDS = str.maketrans("", "", "\t\r\n")


@dataclass(frozen=True, slots=True)
class Link:
    """One entry: its absolute URL, and what the list says of it by field name."""

    url: str
    url_fp: str
    entry: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ListPage:
    """What a list page gave; `next_url` where it links to a next page. Links are in page order, each URL once."""

    links: tuple[Link, ...]
    next_url: str | None

    @property
    def digest(self) -> str:
        """The same for two pages with the same entries."""
        return hashlib.sha256("\n".join(link.url_fp for link in self.links).encode()).hexdigest()[:16]


def read_list(text: str, url: str, charset: str, rules: ListRules, next_selector: str | None = None) -> ListPage:
    """Entries of the page `text` found at `url`; `charset` is what non-ASCII queries are encoded in.

    Raises ConfigError for a selector or pattern that cannot be used.
    """
    try:
        tree = LexborHTMLParser(text)
        base = _base(tree, url)
        links: dict[str, Link] = {}
        for anchor, entry in _candidates(tree, rules):
            link = _link(anchor, entry, base, charset)
            if link is not None and _fits(link.url, rules):
                links.setdefault(link.url_fp, link)
        following = tree.css_first(next_selector) if next_selector else None
        next_link = None if following is None else _link(following, {}, base, charset)
    except (SelectolaxError, ValueError, re.error) as error:
        raise ConfigError(f"list rules {rules.model_dump(exclude_none=True)} cannot be used: {error}") from error
    return ListPage(tuple(links.values()), None if next_link is None else next_link.url)


def _candidates(tree: LexborHTMLParser, rules: ListRules) -> Iterator[tuple[LexborNode, dict[str, str]]]:
    anchors = rules.links or "a[href]"
    if rules.item is None:
        for anchor in tree.css(anchors):
            yield anchor, _titled(anchor)
        return
    for item in tree.css(rules.item):
        said = {name: _text(item.css_first(selector)) for name, selector in rules.fields.items()}
        entry = {name: text for name, text in said.items() if text}
        found = item.css(anchors)
        for anchor in found or ([item] if item.tag == "a" else []):
            yield anchor, entry or _titled(anchor)


def _titled(anchor: LexborNode) -> dict[str, str]:
    title = _text(anchor) or " ".join((anchor.attributes.get("title") or "").split())[:MAX_TEXT]
    return {"title": title} if title else {}


def _text(node: LexborNode | None) -> str:
    return "" if node is None else " ".join(node.text(separator=" ").split())[:MAX_TEXT]


def _link(anchor: LexborNode, entry: Mapping[str, str], base: str, charset: str) -> Link | None:
    href = (anchor.attributes.get("href") or "").translate(LINE_ENDS).strip()
    if not href or href.startswith("#") or OTHER_SCHEMES.match(href):
        return None
    try:
        url = safe_url_string(urljoin(base, href), encoding=charset).partition("#")[0]
        return Link(url, url_fp(url), entry)
    except (ValueError, LookupError):
        return None


def _fits(url: str, rules: ListRules) -> bool:
    return rules.url_pattern is None or re.search(rules.url_pattern, url) is not None


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    href = (node.attributes.get("href") or "").strip() if node is not None else ""
    try:
        return urljoin(url, href) if href else url
    except ValueError:
        return url
