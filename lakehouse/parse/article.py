"""Generic article extraction: a page without a template to title, time, author, origin and body."""

from __future__ import annotations

from typing import Any

import lxml.html

from lakehouse.model.record import Evidence, TimeConfidence
from lakehouse.parse.blocks import Outline, read_outline
from lakehouse.parse.body import find_body
from lakehouse.parse.byline import find_author, find_origin
from lakehouse.parse.dom import node_path
from lakehouse.parse.heading import find_title
from lakehouse.parse.published import find_published
from lakehouse.parse.structured import read_structured
from lakehouse.parse.times import TimeReader

MAX_RAW = 2000
AROUND = 10


def extract_article(
    root: lxml.html.HtmlElement, reader: TimeReader, url: str
) -> tuple[dict[str, Any], dict[str, Evidence]]:
    """Values and evidence of a page; what it does not say is None."""
    structured = read_structured(root)
    outline = read_outline(root)
    title = find_title(root, outline, structured, url)
    place = title.block.index if title is not None and title.block is not None else None
    body = find_body(outline, place)
    span = (body.first, body.last)
    published = find_published(root, outline, structured, reader, url, place, span)
    near = _near(outline, place, span)
    author, origin = find_author(outline, structured, near), find_origin(structured, near)
    values: dict[str, Any] = {
        "title": title.text if title else None,
        "publish_time": published.time.value if published else None,
        "time_confidence": published.time.confidence if published else TimeConfidence.UNKNOWN,
        "author": author.text if author else None,
        "origin": origin.text if origin else None,
        "body": body.text or None,
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
    if body.container is not None:
        evidence["body"] = Evidence("densest element", node_path(body.container.node), body.text[:MAX_RAW])
    return values, evidence


def _near(outline: Outline, title: int | None, body: tuple[int, int]) -> list[Any]:
    """Blocks around the title and the body's beginning, then its end: where names stand."""
    first, last = body
    start = min(first, title if title is not None else first)
    head = outline.blocks[max(start - AROUND // 2, 0) : first + 4]
    tail = outline.blocks[max(last - 3, first + 4) : last + 4]
    return [*head, *tail]
