"""Text of a page to an element tree, within limits that no page can break.

The parser stops by itself at a nesting of 2048; what would cost more than linear time is counted before it starts, so
the limits are the same on every machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import lxml.etree

MAX_CHARS = 20_000_000
MAX_TAGS = 600_000
MAX_DEPTH = 2048
LONG_TAG = 2_000
MAX_ATTRIBUTE_WORK = 400_000_000
MAX_SIBLING_WORK = 1_000_000_000
ATTRIBUTE = re.compile(rb"""[^\s"'>/=]+(?:\s*=\s*(?:"[^"]*+"|'[^']*+'|[^\s>"']+))?""")
RAW_TEXT = ((b"<script", b"</script"), (b"<style", b"</style"), (b"<!--", b"-->"))
HIDDEN_STYLE = re.compile(r"display\s*:\s*none", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tree:
    """The root element of a page, or what kept it from being parsed (`problem`, `detail`)."""

    root: lxml.etree._Element | None
    problem: str | None = None
    detail: str | None = None


def parse_tree(text: str) -> Tree:
    """The tree of a page's text; never raises."""
    data = text.encode("utf-8", errors="replace")
    tags = data.count(b"<")
    limit = _limit_before(text, data, tags)
    if limit is not None:
        return Tree(None, "parser_limit", limit)
    parser = lxml.etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True, no_network=True
    )
    try:
        root = lxml.etree.fromstring(data, parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        root = None
    if root is None:
        return Tree(None, "unreadable", "the page holds no element")
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" or "depth" in entry.message for entry in parser.error_log):
        return Tree(None, "parser_limit", f"elements are nested deeper than {MAX_DEPTH}")
    if tags > MAX_TAGS // 10 and _sibling_work(root) > MAX_SIBLING_WORK:
        return Tree(None, "parser_limit", "one element has too many children")
    return Tree(root)


def _limit_before(text: str, data: bytes, tags: int) -> str | None:
    """The limit that a page is over before it is parsed, in words."""
    if len(text) > MAX_CHARS:
        return f"the page has {len(text)} characters, more than {MAX_CHARS}"
    if tags > MAX_TAGS:
        return f"the page has {tags} tags, more than {MAX_TAGS}"
    if _attribute_work(data) > MAX_ATTRIBUTE_WORK and _attribute_work(_without_raw_text(data)) > MAX_ATTRIBUTE_WORK:
        return "an element has too many attributes"
    return None


def _attribute_work(data: bytes) -> int:
    """Squares of the attribute counts of long tags: adding an attribute looks at all before it."""
    if len(data) < LONG_TAG:
        return 0
    work = 0
    for piece in data.split(b">"):
        if len(piece) >= LONG_TAG:
            tag = piece[piece.rfind(b"<") if piece.rfind(b"<") > 0 and b'"' not in piece else piece.find(b"<") :]
            work += len(ATTRIBUTE.findall(tag)) ** 2
    return work


def _without_raw_text(data: bytes) -> bytes:
    """The page without scripts, styles and comments, whose words are no attributes."""
    for start, end in RAW_TEXT:
        kept, position = [], 0
        while (first := data.find(start, position)) >= 0 and (last := data.find(end, first)) >= 0:
            kept.append(data[position:first])
            position = last
        data = b"".join([*kept, data[position:]])
    return data


def _sibling_work(root: lxml.etree._Element) -> int:
    """Squares of the child counts: a selector that counts siblings may look at all pairs."""
    return sum(len(element) ** 2 for element in root.iter("*"))


def text_of(element: lxml.etree._Element) -> str:
    """All text below an element, its blanks made single."""
    return " ".join("".join(map(str, element.itertext())).split())


def node_path(element: lxml.etree._Element) -> str:
    """The XPath of an element from the root, with positions."""
    return str(element.getroottree().getpath(element))


def is_hidden(element: lxml.etree._Element) -> bool:
    """Whether an element's own attributes keep it from being shown."""
    if element.get("hidden") is not None:
        return True
    style = element.get("style")
    return style is not None and HIDDEN_STYLE.search(style) is not None
