"""Generic article extraction: a page without a template to title, time, author, origin and body."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

import lxml.etree

from lakehouse.model.record import Evidence, TimeConfidence
from lakehouse.parse.blocks import MAX_BLOCKS, Outline, mark_cues, read_outline, weight_of
from lakehouse.parse.body import EMPTY, Body, find_body
from lakehouse.parse.byline import find_author, find_origin
from lakehouse.parse.dom import node_path, text_of
from lakehouse.parse.heading import PARTS, Title, find_title, site_words, squashed
from lakehouse.parse.published import find_published
from lakehouse.parse.structured import Structured, read_structured
from lakehouse.parse.times import TimeReader

MAX_RAW = 2000
WEAK = 600.0
FAR_MORE = 2.0
MAX_TITLE_CHARS = 500
DENSEST = "densest element"
TAGS = re.compile(r"<(?:/?(?:p|div|br|li|h[1-6])\b[^<>]*)>|<[^<>]{1,200}>|\r")
AROUND = 10


class TooMuchText(Exception):
    """A page has more blocks of text than are looked at."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a page: with or without its hidden elements."""

    outline: Outline
    title: Title | None
    body: Body

    @property
    def place(self) -> int | None:
        """Index of the block that is the title, None where it is not visible."""
        return self.title.block.index if self.title is not None and self.title.block is not None else None


def extract_article(
    root: lxml.etree._Element, reader: TimeReader, url: str
) -> tuple[dict[str, Any], dict[str, Evidence]]:
    """Values and evidence of a page; what it does not say is None. Raises TooMuchText."""
    structured = read_structured(root)
    reading = _best_reading(root, structured, url)
    outline, title, body, place = reading.outline, reading.title, reading.body, reading.place
    text, rule = _whole_text(body, structured)
    span = (body.first, body.last)
    published = find_published(root, outline, structured, reader, url=url, title=place, body=span)
    near = _near(outline, place, span)
    author, origin = find_author(structured, near, _site(root, structured, url)), find_origin(structured, near)
    values: dict[str, Any] = {
        "title": title.text if title else None,
        "publish_time": published.time.value if published else None,
        "time_confidence": published.time.confidence if published else TimeConfidence.UNKNOWN,
        "author": author.text if author else None,
        "origin": origin.text if origin else None,
        "body": text or None,
    }
    evidence: dict[str, Evidence] = {}
    if title:
        evidence["title"] = Evidence(title.rule, title.node, title.text)
    if published:
        evidence["publish_time"] = Evidence(published.rule, published.node, published.time.text)
    if author:
        evidence["author"] = Evidence(author.rule, author.node, author.raw[:MAX_RAW])
    if origin:
        evidence["origin"] = Evidence(origin.rule, origin.node, origin.raw[:MAX_RAW])
    if text:
        node = node_path(body.container.node) if body.container is not None and rule == DENSEST else None
        evidence["body"] = Evidence(rule, node, text[:MAX_RAW])
    return values, evidence


def _best_reading(root: lxml.etree._Element, structured: Structured, url: str) -> Reading:
    """The page as it is shown, or with its hidden elements where these hold most of the text, as scripts show them."""
    shown = _read(root, structured, url, hidden=False)
    if shown.body.weight >= WEAK or not shown.outline.hides:
        return shown
    whole = _read(root, structured, url, hidden=True)
    far_more = whole.body.weight >= max(FAR_MORE * shown.body.weight, WEAK / 2)
    return whole if far_more else shown


def _read(root: lxml.etree._Element, structured: Structured, url: str, *, hidden: bool) -> Reading:
    outline = read_outline(root, hidden=hidden)
    if outline.cut:
        raise TooMuchText(f"the page has more than {MAX_BLOCKS} blocks of text")
    title = find_title(root, outline, structured, url)
    reading = Reading(outline, title, EMPTY)
    if reading.place is not None:
        mark_cues(outline, reading.place)
    body = find_body(outline, reading.place)
    if not body.blocks and reading.place is not None:
        mark_cues(outline)
        body = find_body(outline, reading.place)
    return replace(reading, body=body)


def _whole_text(body: Body, structured: Structured) -> tuple[str, str]:
    """The text of the body, or that of the JSON-LD where the page shows far less than it states."""
    stated = structured.article.get("articleBody")
    if isinstance(stated, str) and body.weight < WEAK:
        lines = [" ".join(line.split()) for line in TAGS.sub("\n", unescape(stated)).split("\n")]
        text = "\n".join(line for line in lines if line)
        if weight_of(text) >= FAR_MORE * max(body.weight, 1.0):
            return text, "jsonld: articleBody"
    return body.text, DENSEST


def _site(root: lxml.etree._Element, structured: Structured, url: str) -> set[str]:
    """Names of the site, squashed: as it states them, and the parts of the page's title after the first."""
    title = next((text_of(element) for element in root.iter("title")), "")[:MAX_TITLE_CHARS]
    return site_words(structured, url) | {squashed(part) for part in PARTS.split(title)[1:] if part}


def _near(outline: Outline, title: int | None, body: tuple[int, int]) -> list[Any]:
    """Blocks around the title and the body's beginning, then its end: where names stand."""
    first, last = body
    start = min(first, title if title is not None else first)
    head = outline.blocks[max(start - AROUND // 2, 0) : first + 4]
    tail = outline.blocks[max(last - 3, first + 4) : last + 4]
    return [*head, *tail]
