"""What a page says of itself for machines: JSON-LD, meta elements, microdata."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lxml.etree

ARTICLE_TYPES = frozenset(
    [
        "article",
        "newsarticle",
        "reportagenewsarticle",
        "analysisnewsarticle",
        "opinionnewsarticle",
        "backgroundnewsarticle",
        "reviewnewsarticle",
        "askpublicnewsarticle",
        "blogposting",
        "liveblogposting",
        "socialmediaposting",
        "report",
        "techarticle",
        "scholarlyarticle",
        "advertisercontentarticle",
        "satiricalarticle",
        "discussionforumposting",
        "review",
    ]
)
WEAK_TYPES = frozenset(
    ["webpage", "itempage", "videoobject", "imagegallery", "mediagallery", "recipe", "podcastepisode", "episode"]
)
MAX_JSON = 3_000_000
MAX_NODES = 5_000
MAX_METAS = 2_000
WRAPPERS = (("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("<![CDATA[", "]]>"), ("/*<![CDATA[*/", "/*]]>*/"))
TRAILING = re.compile(r",\s*(?=[}\]])")


@dataclass(slots=True)
class Structured:
    """`metas` by lower-case name or property, `article` the JSON-LD node of the article ({} if none), `nodes` all."""

    metas: dict[str, list[str]] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    article: dict[str, Any] = field(default_factory=dict)
    article_is_weak: bool = False

    def meta(self, *names: str) -> str | None:
        """The first non-empty content of the first name that the page has."""
        for name in names:
            for content in self.metas.get(name, ()):
                if content.strip():
                    return content.strip()
        return None


def read_structured(root: lxml.etree._Element) -> Structured:
    """Meta elements and JSON-LD of a page; broken JSON gives nothing."""
    found = Structured(metas=read_metas(root))
    for script in root.iter("script"):
        if "ld+json" in (script.get("type") or "").lower():
            found.nodes.extend(read_jsonld(script.text or ""))
    strong = [node for node in found.nodes if types_of(node) & ARTICLE_TYPES]
    weak = [node for node in found.nodes if types_of(node) & WEAK_TYPES]
    if strong:
        found.article = max(strong, key=_fullness)
    elif weak:
        found.article, found.article_is_weak = max(weak, key=_fullness), True
    return found


def read_metas(root: lxml.etree._Element) -> dict[str, list[str]]:
    """Contents of meta elements by their name, property, itemprop or http-equiv in lower case."""
    metas: dict[str, list[str]] = {}
    for number, element in enumerate(root.iter("meta")):
        if number >= MAX_METAS:
            break
        content = element.get("content")
        if content is None:
            continue
        for attribute in ("name", "property", "itemprop", "http-equiv"):
            name = element.get(attribute)
            if name:
                metas.setdefault(name.strip().lower(), []).append(content)
    return metas


def read_jsonld(text: str) -> list[dict[str, Any]]:
    """All objects of a JSON-LD script, outer before inner."""
    text = text.strip()
    for start, end in WRAPPERS:
        text = text.removeprefix(start).removesuffix(end).strip()
    text = text.removesuffix(";")
    if not text or len(text) > MAX_JSON:
        return []
    for attempt in (text, TRAILING.sub("", text)):
        try:
            return list(_objects(json.loads(attempt, strict=False)))
        except (ValueError, RecursionError):
            continue
    return []


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    queue = deque([value])
    seen = 0
    while queue and seen < MAX_NODES:
        item = queue.popleft()
        seen += 1
        if isinstance(item, dict):
            yield item
            queue.extend(part for part in item.values() if isinstance(part, dict | list))
        elif isinstance(item, list):
            queue.extend(part for part in item if isinstance(part, dict | list))


def types_of(node: dict[str, Any]) -> frozenset[str]:
    """The `@type`s of a node, lower case, without a schema prefix."""
    value = node.get("@type")
    names = value if isinstance(value, list) else [value]
    return frozenset(str(name).rsplit("/", 1)[-1].lower() for name in names if name)


def _fullness(node: dict[str, Any]) -> int:
    keys = ("headline", "datePublished", "articleBody", "author", "mainEntityOfPage")
    return sum(1 for key in keys if node.get(key))


def plain(value: Any) -> str | None:
    """A JSON-LD value as text: a string, the `name` of an object, or the first of a list."""
    for _ in range(4):
        if isinstance(value, list):
            value = value[0] if value else None
        elif isinstance(value, dict):
            value = value.get("name") or value.get("@value")
        else:
            break
    return str(value).strip() or None if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def names_in(value: Any) -> list[str]:
    """Names in a JSON-LD value that may be a string, an object or a list of them, without repeats."""
    items = value if isinstance(value, list) else [value]
    names = [name for name in (plain(item) for item in items[:20]) if name]
    return list(dict.fromkeys(names))
