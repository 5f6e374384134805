"""The publish time of a page: what it shows near its title and what it states for machines, weighed together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import lxml.etree

from lakehouse.model.record import TimeConfidence
from lakehouse.parse.blocks import Block, Outline
from lakehouse.parse.body import STOP
from lakehouse.parse.dom import node_path, text_of
from lakehouse.parse.structured import Structured, plain
from lakehouse.parse.times import FoundTime, TimeReader

METAS = (
    "article:published_time", "article:published", "og:published_time", "og:article:published_time",
    "bytedance:published_time", "weibo:article:create_at", "datepublished", "parsely-pub-date", "sailthru.date",
    "article.published", "article_date_original", "publishdate", "publish-date", "publish_date", "publish_time",
    "publication_date", "publicationdate", "pubdate", "published_time", "published-date", "published_date",
    "cxenseparse:recs:publishtime", "dc.date.issued", "dcterms.created", "dcterms.issued", "dcterms.date", "dc.date",
    "dc.date.created", "dcsext.articlefirstpublished", "citation_publication_date", "citation_online_date",
    "originalpublicationdate", "displaydate", "date_published", "article.created", "created", "firstpublished",
    "apub:time", "ptime", "releasedate", "og:release_date", "shareaholic:article_published_time", "rnews:datepublished",
    "_pubtime", "date",
)  # fmt: skip
MODIFIED = ("dateupdate", "datemodified", "article:modified_time", "og:updated_time", "last-modified", "lastmodified")
SCRIPT_KEYS = (
    r"publish_?(?:ed)?_?(?:time|date|at|on)?|pub_?(?:time|date|lishTime|lishDate)|ptime|ctime|ct|create_?(?:d)?_?(?:time|date|at)"
    r"|date_?published|first_?published(?:_?(?:at|date))?|release_?(?:time|date)|news_?time|article_?(?:time|date)|post_?(?:time|date)"
    r"|display_?(?:time|date)|svr_?time|ori_?create_?time"
)
SCRIPT_TIME = re.compile(
    rf"""(?<![\w$])["']?(?:{SCRIPT_KEYS})["']?\s*[:=]\s*["']?(?P<value>\d{{4}}[-/年][^"'\n<>]{{4,30}}|\d{{10}}(?:\d{{3}})?)(?=["'\s,;}}|]|$)""",
    re.IGNORECASE,
)
MAX_SCRIPT = 1_500_000
AROUND = 12
MAX_HEAD = 300
LABEL_PUBLISHED = re.compile(
    r"发布|发表|发稿|刊发|日期|时间|published|posted|first\s+published|on\b|created", re.IGNORECASE
)
LABEL_UPDATED = re.compile(
    r"更新|修改|编辑于|updated|modified|edited|corrected|last\s+(?:changed|reviewed)", re.IGNORECASE
)
TIME_CLASS = re.compile(r"time|date|pub|info|meta|byline|source|riqi|shijian", re.IGNORECASE)
URL_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d{2})(?P<sep>[/_.-]?)(?P<month>0[1-9]|1[0-2])[/_.-]?(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
)
NEVER_CUES = frozenset({"comments", "related", "footer", "popup", "promo"})
SHORT_BLOCK = 220.0
SENTENCE = 60.0
SENTENCE_SHARE = 0.35
RELATIVE_SHARE = 0.25
NEAR_DAYS = timedelta(hours=38)
MAX_OFFSET = timedelta(hours=14)
QUARTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Published:
    """A publish time with the rule that gave it and the node that showed it."""

    time: FoundTime
    rule: str
    node: str | None = None
    block: Block | None = None


def find_published(
    root: lxml.etree._Element,
    outline: Outline,
    structured: Structured,
    reader: TimeReader,
    *,
    url: str,
    title: int | None,
    body: tuple[int, int],
) -> Published | None:
    """When the page says it was published, in the local time that it shows; None where it does not say.

    `title` and `body` are the places of the title and of the body's first and last block.
    """
    stated = _stated(root, structured, reader)
    shown = _shown(outline, reader, title, body, stated)
    if shown is not None and not shown.time.year_shown:
        shown = _with_year(shown, stated or _modified(structured, reader))
    if shown is not None and (stated or (stated := _attribute_of(shown, reader))):
        return _agreed(shown, stated)
    if shown is not None and shown.time.confidence is TimeConfidence.ABSOLUTE:
        return shown
    found = stated or _in_scripts(root, reader) or _in_url(url, reader)
    return found or (shown if reader.relative else None)


def _stated(root: lxml.etree._Element, structured: Structured, reader: TimeReader) -> Published | None:
    """The first believable time of JSON-LD, meta elements and microdata."""
    for text, rule in _statements(root, structured):
        found = reader.stamp(text)
        if found is not None and found.confidence is TimeConfidence.ABSOLUTE:
            return Published(found, rule)
    return None


def _statements(root: lxml.etree._Element, structured: Structured) -> Iterator[tuple[str, str]]:
    nodes = [structured.article, *structured.nodes[:50]]
    for key in ("datePublished", "dateCreated", "uploadDate"):
        for node in nodes:
            text = plain(node.get(key))
            if text:
                yield text, f"jsonld: {key}"
        if key == "datePublished":
            for name in METAS:
                for content in structured.metas.get(name, ()):
                    yield content, f"meta: {name}"
            for element in root.iterfind(".//*[@itemprop='datePublished']"):
                yield (
                    element.get("content") or element.get("datetime") or text_of(element),
                    "itemprop: datePublished",
                )
    for element in root.iterfind(".//time[@pubdate]"):
        yield element.get("datetime") or text_of(element), "css: time[pubdate]"


def _shown(
    outline: Outline, reader: TimeReader, title: int | None, body: tuple[int, int], stated: Published | None
) -> Published | None:
    """The visible time that looks most like the publish time."""
    best: tuple[float, FoundTime, Block] | None = None
    for block in _worth_reading(outline.blocks, title, body):
        for found in reader.find(block.text):
            if _in_prose(block, found):
                continue
            rank = _rank(block, found, title, body, stated)
            if best is None or rank > best[0]:
                best = (rank, found, block)
    if best is None or best[0] <= 0:
        return None
    _, found, block = best
    return Published(found, "text near the title", node_path(block.node), block)


def _in_prose(block: Block, found: FoundTime) -> bool:
    """Whether a time is only told of in a sentence; a word such as `today` must fill much of its block."""
    if block.tag == "time" or "byline" in block.cues:
        return False
    if block.weight <= SENTENCE and _named_for_time(block) and STOP.search(block.text) is None:
        return False
    share = len(found.text) / max(len(block.text), 1)
    if found.confidence is TimeConfidence.RELATIVE and found.year_shown and share < RELATIVE_SHARE:
        return True
    return block.weight > SENTENCE and share < SENTENCE_SHARE and STOP.search(block.text) is not None


def _named_for_time(block: Block) -> bool:
    names = f"{block.node.get('class') or ''} {block.node.get('id') or ''}"
    return TIME_CLASS.search(names) is not None


def _worth_reading(blocks: list[Block], title: int | None, body: tuple[int, int]) -> Iterable[Block]:
    """Short blocks from a little before the title to the first paragraphs, and those around the body's end."""
    first, last = body
    start = max(min(first, title if title is not None else first) - AROUND, 0)
    middle = min(max(first, start) + 2 * AROUND, last)
    head = blocks[start : min(middle, start + MAX_HEAD)]
    for block in [*head, *blocks[max(last - AROUND, middle) : last + AROUND]]:
        if block.weight <= SHORT_BLOCK and not block.cues & NEVER_CUES:
            yield block


def _rank(block: Block, found: FoundTime, title: int | None, body: tuple[int, int], stated: Published | None) -> float:
    before = block.text[max(found.start - 24, 0) : found.start]
    rank = 2.0 if found.confidence is TimeConfidence.ABSOLUTE else 0.5
    rank += 1.0 if found.precision != "day" else 0.0
    rank += 1.0 if len(found.text) > 0.5 * len(block.text) else 0.0
    if LABEL_UPDATED.search(before):
        rank -= 1.5
    elif LABEL_PUBLISHED.search(before):
        rank += 1.0
    if block.tag == "time" or "byline" in block.cues or _named_for_time(block):
        rank += 1.0
    if block.link_share > 0.5:
        rank -= 2.0
    if stated is not None:
        rank += 3.0 if abs(found.value - stated.time.value) <= NEAR_DAYS else -2.0
    return rank + _place(block.index, title, body)


def _place(index: int, title: int | None, body: tuple[int, int]) -> float:
    """Just after the title is best; inside and after the body is worse the farther away."""
    first, last = body
    if title is not None and title <= first:
        if title < index <= max(first, title + 6):
            return 2.0 - 0.05 * (index - title)
        if index <= title:
            return 1.0 - 0.1 * (title - index)
    elif index <= first:
        return 1.0 - 0.1 * (first - index)
    if index <= first + 3:
        return 0.5
    return -1.0 if index <= last else -0.5


def _attribute_of(shown: Published, reader: TimeReader) -> Published | None:
    """The `datetime` of a time element where the time is shown, if both tell of one time."""
    if shown.block is None:
        return None
    for element in shown.block.node.iter("time"):
        found = reader.stamp(element.get("datetime") or "")
        if found is not None and abs(found.value - shown.time.value) <= NEAR_DAYS:
            return Published(found, "css: time[datetime]", shown.node)
    return None


def _modified(structured: Structured, reader: TimeReader) -> Published | None:
    """When the page says it was changed last: good for the year of a date that shows none."""
    for name in MODIFIED:
        for content in structured.metas.get(name, ()):
            found = reader.stamp(content)
            if found is not None and found.confidence is TimeConfidence.ABSOLUTE:
                return Published(found, f"meta: {name}")
    return None


def _with_year(shown: Published, told: Published | None) -> Published:
    """A time shown without a year, with the year of the one that the page states; as it is if they are far apart."""
    if told is None:
        return shown
    for year in (told.time.value.year, told.time.value.year + 1, told.time.value.year - 1):
        try:
            value = shown.time.value.replace(year=year)
        except ValueError:
            continue
        if abs(value - told.time.value) <= NEAR_DAYS:
            return replace(shown, time=replace(shown.time, value=value, confidence=TimeConfidence.ABSOLUTE))
    return shown


def _agreed(shown: Published, stated: Published) -> Published:
    """The stated instant in the clock that the page shows, where both tell of one time; else the stated one.

    A time shown without a year counts once the stated one gave it.
    """
    seen, told = shown.time, stated.time
    wall, told_wall = seen.value.replace(tzinfo=None), told.value.replace(tzinfo=None)
    if seen.confidence is not TimeConfidence.ABSOLUTE or abs(seen.value - told.value) > NEAR_DAYS:
        return stated
    if not seen.year_shown and wall.date() != told_wall.date():
        return stated
    if seen.precision == "day":
        if told.precision != "day" and told_wall.date() == wall.date():
            return stated
        return shown
    if told.precision == "day" or seen.zoned or not told.zoned:
        return shown
    local = _same_instant(wall, told.value)
    return replace(shown, time=replace(seen, value=local)) if local is not None else shown


def _same_instant(wall: datetime, instant: datetime) -> datetime | None:
    """The shown clock time as the stated instant in the offset that this takes, if there is such an offset."""
    utc = instant.astimezone(timezone.utc).replace(tzinfo=None, second=0, microsecond=0)  # noqa: UP017
    offset = wall.replace(second=0, microsecond=0) - utc
    if abs(offset) > MAX_OFFSET or offset % QUARTER:
        return None
    return wall.replace(tzinfo=timezone(offset))


def _in_scripts(root: lxml.etree._Element, reader: TimeReader) -> Published | None:
    """A time under a telling key in a script, such as `publish_time: "2024-03-05 08:30"`."""
    read = 0
    for script in root.iter("script"):
        text = script.text
        if not text or read + len(text) > MAX_SCRIPT:
            continue
        read += len(text)
        for match in SCRIPT_TIME.finditer(text):
            found = reader.stamp(match["value"])
            if found is not None and found.confidence is TimeConfidence.ABSOLUTE:
                return Published(found, "script")
    return None


def _in_url(url: str, reader: TimeReader) -> Published | None:
    """A whole date in the URL."""
    match = URL_DATE.search(url)
    if match is None:
        return None
    found = reader.first(f"{match['year']}-{match['month']}-{match['day']}")
    return Published(replace(found, text=match[0]), "url") if found else None
