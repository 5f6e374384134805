"""The article text of a page without a template: the element where prose outweighs everything else, then its blocks.

Each block is worth what it says for being body: prose counts its length, links and labels count against, and so does
text whose element says that it is navigation, comments, related reading. The element with the greatest sum is the
container; inside it blocks are kept or dropped by the same signs, and head and tail are trimmed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from lakehouse.parse.blocks import HEADINGS, Block, Outline, Span
from lakehouse.parse.boilerplate import ends_article, is_boilerplate, is_head_line, opens_related

BAD_CUES = frozenset({"comments", "related", "nav", "aside", "footer", "share", "promo", "popup", "tags"})
MARK = re.compile("[.!?。！？；;,，、…:：]")
STOP = re.compile("[.!?。！？…；;:：][\"'”’」』)）\\]]*$")
MAX_HEAD = 25
SENTENCE = re.compile("[.!?。！？…][\"'”’」』)）\\]]*$")
MIN_SENTENCE = 10.0
PARAGRAPHS = frozenset({"p", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "figcaption", "dd"})
LONG_TEXT = 1000.0
LABEL_COST = 6.0
NEXT_TITLE = 25.0
SHORT = 60.0
MOSTLY_LINKS = 0.5
FLOOR = -60.0
NEARLY_ALL = 0.96


Kind = tuple[str, str, str]
MAY_END = frozenset({"p", "li", "div", "td", "blockquote"})


@dataclass(frozen=True, slots=True)
class Body:
    """The chosen blocks with the element that holds them; `sure` from 0 to 1."""

    blocks: tuple[Block, ...]
    container: Span | None
    first: int
    last: int

    @property
    def text(self) -> str:
        """Paragraphs, one a line."""
        return "\n".join(block.text for block in self.blocks)

    @property
    def weight(self) -> float:
        """Length of the text, a CJK character counted as 2.5 letters."""
        return sum(block.weight for block in self.blocks)


EMPTY = Body((), None, 0, 0)


def reads_as_text(block: Block) -> bool:
    """Whether a block reads as running text: long, or with sentence marks, and not mostly links."""
    if block.link_share >= MOSTLY_LINKS or block.tag in HEADINGS:
        return False
    if block.weight >= 3 * SHORT:
        return True
    return block.weight >= SHORT / 2 and MARK.search(block.text) is not None and not is_head_line(block.text)


def find_body(outline: Outline, title: int | None = None) -> Body:
    """The body of a page; `EMPTY` where nothing reads as text."""
    blocks = outline.blocks
    if not blocks:
        return EMPTY
    for block in blocks:
        block.prose = reads_as_text(block)
    values = [_value(block) for block in blocks]
    worths = _worths(outline.spans, values)
    container = _best_span(outline.spans, worths)
    if container is None:
        return EMPTY
    inner = blocks_cues(outline, container)
    inside = blocks[container.first : container.last]
    inside = _from_title(inside, title)
    inside = _continued(inside, inner, outline.spans)
    kept = _without_edges([block for block in inside if _belongs(block, inner)])
    lead = _lead(blocks, title, kept[0].index if kept else container.first)
    return Body((*lead, *kept), container, container.first, container.last)


def _lead(blocks: list[Block], title: int | None, first: int) -> list[Block]:
    """The sentence under the title, which may stand outside of the container or be a heading."""
    if title is None or not title < first <= title + MAX_HEAD:
        return []
    for block in blocks[title + 1 : min(title + 4, first)]:
        sentence = block.weight >= SHORT / 2 and STOP.search(block.text) is not None
        reads = (sentence or block.weight >= 1.5 * SHORT) and block.link_share < 0.2
        if reads and not block.cues and not is_boilerplate(block.text, block.weight):
            return [block]
    return []


def _from_title(inside: list[Block], title: int | None) -> list[Block]:
    """What follows the title, and not what follows the next title: pages may hold several articles in a row."""
    if not inside:
        return inside
    if title is not None and inside[0].index <= title <= inside[-1].index:
        after = [block for block in inside if block.index > title]
        if _prose_weight(after) >= 0.5 * _prose_weight(inside):
            inside = after
    before = 0.0
    for place, block in enumerate(inside):
        if block.tag == "h1" and block.weight >= NEXT_TITLE and before >= SHORT:
            return inside[:place]
        before += block.weight if block.prose else 0.0
    return inside


def _continued(inside: list[Block], inner: frozenset[str], spans: list[Span]) -> list[Block]:
    """The blocks without what stands after the article and without boxes of related reading inside it."""
    total = _prose_weight(inside)
    main = _main_kind(inside)
    boxes = _boxes(inside, spans, 0.25 * total)
    kept: list[Block] = []
    before, skip_to, waiting = 0.0, 0, False
    for block in inside:
        text = block.prose and not (block.cues & BAD_CUES) - inner
        if block.index < skip_to:
            continue
        if before >= 0.5 * total and (_comments_begin(block, inner) or ends_article(block.text, block.weight)):
            break
        if opens_related(block.text, block.weight):
            skip_to = boxes.get(block.index, block.index + 1)
            waiting = skip_to == block.index + 1
            continue
        if waiting and not (text and _kind(block) == main):
            continue
        waiting = False
        kept.append(block)
        before += block.weight if text else 0.0
    return kept


def _comments_begin(block: Block, inner: frozenset[str]) -> bool:
    return "comments" in block.cues and "comments" not in inner


def _boxes(inside: list[Block], spans: list[Span], most: float) -> dict[int, int]:
    """Where the widest small element ends that begins with a block, by the block's index."""
    if not inside:
        return {}
    start, stop = inside[0].index, inside[-1].index
    sums = [0.0, *accumulate(block.weight if block.prose else 0.0 for block in inside)]
    ends: dict[int, int] = {}
    for span in spans:
        if start <= span.first and span.last <= stop and sums[span.last - start] - sums[span.first - start] <= most:
            ends[span.first] = max(ends.get(span.first, span.first + 1), span.last)
    return ends


def _kind(block: Block) -> Kind:
    """What tells the paragraphs of one text from those of another: their tag, and tag and class of their parent."""
    parent = block.node.getparent()
    around = (str(parent.tag), parent.get("class") or "") if parent is not None else ("", "")
    return (block.tag, *around)


def _main_kind(inside: list[Block]) -> Kind | None:
    weights: dict[Kind, float] = {}
    for block in inside:
        if block.prose:
            kind = _kind(block)
            weights[kind] = weights.get(kind, 0.0) + block.weight
    return max(weights, key=lambda kind: weights[kind], default=None)


def _prose_weight(blocks: list[Block]) -> float:
    return sum(block.weight for block in blocks if block.prose)


def _without_edges(kept: list[Block]) -> list[Block]:
    """The blocks from the first to the last that reads as text; labels, dates and names before and after go."""
    main = _main_kind(kept)
    first = next((n for n, block in enumerate(kept) if _may_begin(block)), None)
    if first is None:
        return kept
    while first > 0 and _kind(kept[first - 1]) == main and not is_head_line(kept[first - 1].text):
        first -= 1
    kept = _without_foreign_tail(kept[first:])
    last = max(n for n, block in enumerate(kept) if n == 0 or _may_end(block, main))
    return kept[: last + 1]


def _may_begin(block: Block) -> bool:
    return block.prose and "byline" not in block.cues and not is_head_line(block.text)


def _without_foreign_tail(kept: list[Block]) -> list[Block]:
    """Without what follows the last paragraph of the main kind in elements of another kind: who the author is, offers.

    Only where most of the text is of one kind, and what goes is little.
    """
    main = _main_kind(kept)
    total = _prose_weight(kept)
    ours = [n for n, block in enumerate(kept) if block.prose and _kind(block) == main]
    if not ours or sum(kept[n].weight for n in ours) < 0.6 * total:
        return kept
    home = {kept[n].node.getparent() for n in ours}
    end = ours[-1] + 1
    while end < len(kept) and (_kind(kept[end]) == main or _at_home(kept[end], home)):
        end += 1
    return kept[:end] if _prose_weight(kept[end:]) <= 0.2 * total else kept


def _at_home(block: Block, home: set[Any]) -> bool:
    """Whether a block stands in an element that holds main paragraphs: beside them, or in a list or quote there."""
    node = block.node
    return any(parent in home for parent, _ in zip(node.iterancestors(), range(3), strict=False)) and block.tag != "div"


def _may_end(block: Block, main: Kind | None) -> bool:
    """Whether a block can be the last of an article: prose, a paragraph like the others, or a short sentence."""
    if block.prose:
        return True
    if block.tag in HEADINGS:
        return False
    return _kind(block) == main or (block.tag in MAY_END and STOP.search(block.text) is not None)


def blocks_cues(outline: Outline, container: Span) -> frozenset[str]:
    """Cues that all of the container's blocks share: they come from around it and do not tell its blocks apart."""
    return frozenset.intersection(*(block.cues for block in outline.blocks[container.first : container.last]))


def _value(block: Block) -> float:
    """What a block adds to an element's claim to be the body."""
    own = block.weight - block.links
    if block.cues & BAD_CUES:
        return -0.5 * block.weight - LABEL_COST
    if block.link_share >= MOSTLY_LINKS:
        return -min(block.links, 100.0) - LABEL_COST
    if block.prose:
        return own - 2 * block.links
    if block.tag in HEADINGS:
        return 0.0
    return own if SENTENCE.search(block.text) and block.weight >= MIN_SENTENCE else -LABEL_COST


def _worths(spans: list[Span], values: list[float]) -> list[float]:
    """The sum of each element, where an inner element counts against it by no more than FLOOR: it can be left out."""
    sums = [0.0, *accumulate(values)]
    worths: list[float] = []
    open_spans: list[tuple[int, float]] = []
    for span in spans:
        worth = sums[span.last] - sums[span.first]
        while open_spans and open_spans[-1][0] >= span.first:
            _, gain = open_spans.pop()
            worth += gain
        worths.append(worth)
        plain = sums[span.last] - sums[span.first]
        open_spans.append((span.first, max(worth, FLOOR) - plain))
    return worths


def _best_span(spans: list[Span], worths: list[float]) -> Span | None:
    """The element with the greatest worth, then down to a child that holds nearly all of it."""
    top = max(worths, default=0.0)
    if top <= 0:
        return None
    best = max((span for span, worth in zip(spans, worths, strict=True) if worth == top), key=lambda span: span.depth)
    inner = [
        span
        for span, worth in zip(spans, worths, strict=True)
        if worth >= NEARLY_ALL * top and span.first >= best.first and span.last <= best.last
    ]
    chosen = max(inner, key=lambda span: span.depth)
    if chosen.node.tag not in PARAGRAPHS or top >= LONG_TEXT:
        return chosen
    # One long paragraph can outweigh a short article: its parent is the article.
    around = [span for span in spans if span.first <= chosen.first and span.last >= chosen.last and span is not chosen]
    return max(
        (span for span in around if span.node.tag not in PARAGRAPHS), key=lambda span: span.depth, default=chosen
    )


def _belongs(block: Block, inner: frozenset[str]) -> bool:
    """Whether a block of the container is body."""
    if (block.cues & BAD_CUES) - inner:
        return False
    if "caption" in block.cues and "caption" not in inner:
        return False
    if is_boilerplate(block.text, block.weight):
        return False
    return block.link_share < MOSTLY_LINKS or block.tag in HEADINGS
