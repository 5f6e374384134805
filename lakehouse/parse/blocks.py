"""A page as a list of text blocks in reading order, each with what is known of it from markup alone.

A block is the text between two block-level boundaries. An element spans a range of blocks, so sums over an element are
differences of running sums.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import lxml.etree

from lakehouse.parse.cues import cues_of
from lakehouse.parse.dom import is_hidden

INLINE_TAGS = frozenset({
    "a", "abbr", "acronym", "amp-img", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "nobr", "o:p", "picture", "q", "rp", "rt", "ruby", "s", "samp", "small",
    "span", "st1:place", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip
DROPPED_TAGS = frozenset({
    "area", "audio", "button", "canvas", "datalist", "embed", "frameset", "head", "iframe", "input", "link", "map",
    "math", "meta", "meter", "noframes", "noscript", "object", "option", "param", "progress", "script", "select",
    "source", "style", "svg", "template", "textarea", "track", "video",
})  # fmt: skip
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
SPACE = re.compile(r"[ \t\r\n\f\v\u00a0\u3000\u200b\ufeff]+")
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
CJK_WEIGHT = 2.5
CLOCK = re.compile(r"\d{1,2}[:：]\d{2}")
MAX_BLOCKS = 40_000
PARAGRAPH = 60.0
MOST = 0.5
LIMITS = {"comments": 0.8}
MAY_BE_LONG = frozenset({"comments", "related"})
CAPTION = 400.0
BREAKS = frozenset({"br", "hr"})


@dataclass(slots=True)
class Block:
    """One run of text; `weight` is its length (a CJK character counts 2.5 latin letters), `links` that of its links."""

    text: str
    node: lxml.etree._Element
    tag: str
    weight: float
    links: float
    index: int
    prose: bool = False
    cues: frozenset[str] = frozenset()

    @property
    def link_share(self) -> float:
        """Part of the text that is linked, 0 to 1."""
        return self.links / self.weight if self.weight else 0.0


@dataclass(slots=True)
class Span:
    """An element and the blocks it holds: `first` to before `last`."""

    node: lxml.etree._Element
    first: int
    last: int
    depth: int
    cues: frozenset[str]


@dataclass(slots=True)
class Outline:
    """All blocks and spans of a page, inner spans before outer ones; `cut` if there were more than MAX_BLOCKS.

    `hides` if hidden elements were left out.
    """

    blocks: list[Block] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    cut: bool = False
    hides: bool = False


def weight_of(text: str) -> float:
    """Length without white space, a CJK character counted as 2.5 letters."""
    letters = len(text) - text.count(" ") - text.count("\n")
    if text.isascii():
        return float(letters)
    return letters + (CJK_WEIGHT - 1) * (len(text) - len(CJK.sub("", text)))


class _Walk:
    """One pass over the tree, without recursion: a page may be nested deeper than Python's stack."""

    def __init__(self) -> None:
        self.outline = Outline()
        self.pieces: list[str] = []
        self.link_pieces: list[str] = []

    def add(self, text: str | None, *, linked: bool) -> None:
        if text and (self.pieces or not text.isspace()):
            # `<span>2018-03-08</span><span>23:16</span>` is set apart by style alone.
            if self.pieces and self.pieces[-1][-1].isdigit() and CLOCK.match(text):
                self.pieces.append(" ")
            self.pieces.append(text)
            if linked:
                self.link_pieces.append(text)

    def close(self, frame: _Frame) -> None:
        """End the current block, if it holds any text; `frame` is the block-level element around it."""
        if not self.pieces:
            return
        text = SPACE.sub(" ", "".join(self.pieces)).strip()
        blocks = self.outline.blocks
        if len(blocks) >= MAX_BLOCKS:
            self.outline.cut = True
        elif text:
            weight = weight_of(text)
            links = min(weight_of(SPACE.sub(" ", "".join(self.link_pieces))), weight) if self.link_pieces else 0.0
            blocks.append(Block(text, frame.node, frame.tag, weight, links, len(blocks)))
        self.pieces, self.link_pieces = [], []


@dataclass(slots=True)
class _Frame:
    """An open element: `owner` is the innermost block-level frame, itself or one around it."""

    node: lxml.etree._Element
    tag: str
    children: Iterator[lxml.etree._Element]
    first: int
    linked: bool = False
    owner: _Frame | None = None


def read_outline(
    root: lxml.etree._Element, skip: Container[lxml.etree._Element] = (), *, hidden: bool = False
) -> Outline:
    """Blocks and spans of a page; scripts, form controls and `skip` give no text, hidden elements if asked."""
    walk = _Walk()
    frame = _Frame(root, "html", iter(root), 0)
    walk.add(root.text, linked=False)
    stack = [frame]
    while stack:
        frame = stack[-1]
        child = next(frame.children, None)
        if child is None:
            _leave(walk, stack)
            continue
        tag = child.tag
        if tag in DROPPED_TAGS or child in skip:
            walk.add(child.tail, linked=frame.linked)
        elif not hidden and is_hidden(child):
            walk.outline.hides = True
            walk.add(child.tail, linked=frame.linked)
        elif tag in BREAKS:
            walk.close(frame.owner or frame)
            walk.add(child.tail, linked=frame.linked)
        elif not len(child) and tag in INLINE_TAGS:
            walk.add(child.text, linked=frame.linked or tag == "a")
            walk.add(child.tail, linked=frame.linked)
        else:
            stack.append(_enter(walk, frame, child, tag))
    mark_cues(walk.outline)
    return walk.outline


def _enter(walk: _Walk, outer: _Frame, child: lxml.etree._Element, tag: str) -> _Frame:
    inline = tag in INLINE_TAGS
    around = outer.owner or outer
    if not inline:
        walk.close(around)
    linked = outer.linked or tag == "a"
    walk.add(child.text, linked=linked)
    return _Frame(child, tag, iter(child), len(walk.outline.blocks), linked, around if inline else None)


def _leave(walk: _Walk, stack: list[_Frame]) -> None:
    frame = stack.pop()
    if frame.owner is None:
        walk.close(frame)
        blocks = walk.outline.blocks
        if len(blocks) > frame.first:
            own = cues_of(frame.node, frame.tag)
            walk.outline.spans.append(Span(frame.node, frame.first, len(blocks), len(stack), own))
    if stack:
        walk.add(frame.node.tail, linked=stack[-1].linked)


def mark_cues(outline: Outline, title: int | None = None) -> None:
    """Give every block the cues of the elements around it that tell something.

    An element that holds the page's title (`title` is its block) is no navigation, comments or the like, whatever its
    name; neither, while the title is unknown, is one that holds most of the page's text.
    """
    blocks = outline.blocks
    weights = [0.0, *accumulate(block.weight - block.links if block.weight >= PARAGRAPH else 0.0 for block in blocks)]
    steps: dict[str, list[int]] = {}
    for span in outline.spans:
        if not span.cues or (title is not None and span.first <= title < span.last):
            continue
        weight = weights[span.last] - weights[span.first]
        for cue in span.cues:
            if _tells(cue, weight, weights[-1], title is not None):
                changes = steps.setdefault(cue, [0] * (len(blocks) + 1))
                changes[span.first] += 1
                changes[span.last] -= 1
    depths = {cue: list(accumulate(changes)) for cue, changes in steps.items()}
    known: dict[frozenset[str], frozenset[str]] = {}
    for block in blocks:
        cues = frozenset([cue for cue, depth in depths.items() if depth[block.index]])
        block.cues = known.setdefault(cues, cues)


def _tells(cue: str, weight: float, whole: float, titled: bool) -> bool:
    """Whether a cue of an element with so much prose says anything: a caption is short, a sidebar not half the page.

    Comments and related reading may be longer than the article itself.
    """
    if cue == "caption" and weight > CAPTION:
        return False
    return (titled and cue in MAY_BE_LONG) or weight <= LIMITS.get(cue, MOST) * max(whole, 1.0)
