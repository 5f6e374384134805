"""The title of a page: the visible heading that the page's machine-readable titles agree with."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import lxml.etree

from lakehouse.parse.blocks import HEADINGS, Block, Outline
from lakehouse.parse.dom import node_path, text_of
from lakehouse.parse.structured import Structured, plain

MAX_TITLE = 100
MAX_STATED = 500
MAX_CANDIDATES = 600
MIN_SQUASHED = 4
PREFIX = 6
NOT_WORDS = re.compile(r"[\W_]+")
BARS = re.compile(r"\s*[|｜_»«]+\s*|\s+::\s+")
DASHES = re.compile(r"\s+[-–—:~/·•]+\s+|-{2,}|—+|(?<=[\u3000-\u9fff\uff00-\uffef])[-–](?=[\u3000-\u9fff\uff00-\uffef])")
PARTS = re.compile(f"{BARS.pattern}|{DASHES.pattern}")
SITE_LIKE = re.compile(
    r"(?:网|报|新闻|频道|门户|在线|客户端|官网|日报|电视台|人民政府|委员会)$"
    r"|\b(?:news|times|post|daily|herald|tribune|journal|magazine)$|\.(?:com|cn|net|org)$",
    re.IGNORECASE,
)
MAX_SITE = 24
TITLE_CLASS = re.compile(
    r"(?:^|[^a-z])(?:title|headline|heading|biaoti|tit|hed)(?:$|[^a-z])|title$|headline$|Title(?![a-z])|Headline",
    re.MULTILINE,
)
NOT_TITLE_CUES = frozenset({"nav", "related", "comments", "footer", "popup", "promo", "share"})


@dataclass(frozen=True, slots=True)
class Title:
    """A title with where it came from; `block` is its place on the page where it is visible."""

    text: str
    rule: str
    node: str | None = None
    block: Block | None = None


def squashed(text: str) -> str:
    """Text for comparing: width and case folded, letters and digits alone."""
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return NOT_WORDS.sub("", folded.casefold())


def find_title(root: lxml.etree._Element, outline: Outline, structured: Structured, url: str) -> Title | None:
    """The title without the site's name, at most 100 characters; None where the page shows none."""
    stated = list(_stated(root, structured))
    visible = _best_visible(outline, [text for text, _ in stated])
    if visible is not None:
        return visible
    site = site_words(structured, url)
    for text, rule in stated:
        bare = without_site(text, site)
        if 0 < len(bare) <= MAX_TITLE:
            return Title(bare, rule)
    return None


def _stated(root: lxml.etree._Element, structured: Structured) -> Iterator[tuple[str, str]]:
    """Titles that the page states for machines, best first."""
    candidates = (
        (None if structured.article_is_weak else plain(structured.article.get("headline")), "jsonld: headline"),
        (structured.meta("og:title"), "meta: og:title"),
        (structured.meta("twitter:title", "dc.title", "parsely-title", "sailthru.title", "title"), "meta: title"),
        (next((text_of(element) for element in root.iter("title") if _in_head(element)), None), "css: title"),
    )
    for text, rule in candidates:
        if text and text.strip():
            yield " ".join(text[: 4 * MAX_STATED].split())[:MAX_STATED], rule


def _in_head(element: lxml.etree._Element) -> bool:
    return all(parent.tag != "svg" for parent in element.iterancestors())


def _best_visible(outline: Outline, stated: list[str]) -> Title | None:
    squashed_stated = [squashed(text) for text in stated]
    best: tuple[float, Block] | None = None
    looked = 0
    for block in outline.blocks:
        if not 0 < len(block.text) <= MAX_TITLE:
            continue
        if block.tag not in HEADINGS and not any(block.text[:PREFIX] in text for text in stated) and not _level(block):
            continue
        looked += 1
        if looked > MAX_CANDIDATES:
            break
        rank = _rank(block, squashed_stated)
        if rank is not None and (best is None or rank > best[0]):
            best = (rank, block)
    if best is None:
        return None
    block = best[1]
    return Title(block.text, f"heading: {block.tag}", node_path(block.node), block)


def _rank(block: Block, stated: list[str]) -> float | None:
    """How much a block looks like the title, or None: agreement with what is stated, heading level, class, place."""
    level = _level(block)
    text = squashed(block.text)
    if level == 0 and not any(other.startswith(text) for other in stated):
        return None
    agreement = max((_agreement(text, other) for other in stated), default=0.0)
    if level == 0 and agreement < 1:
        return None
    if stated and agreement == 0 and block.tag != "h1":
        return None
    rank = 4 * agreement + level - 0.001 * block.index
    if block.cues & NOT_TITLE_CUES:
        rank -= 2.5
    if block.link_share > 0.8:
        rank -= 1.5
    return rank


def _level(block: Block) -> float:
    if block.tag in HEADINGS:
        return {"h1": 2.0, "h2": 1.2, "h3": 0.8}.get(block.tag, 0.4)
    names = f"{block.node.get('class') or ''}\n{block.node.get('id') or ''}"
    return 1.0 if TITLE_CLASS.search(names) else 0.0


def _agreement(text: str, stated: str) -> float:
    """1 where the texts are equal or one begins with the other, less for a part of it."""
    if len(text) < MIN_SQUASHED:
        return 1.0 if text == stated and text else 0.0
    if text == stated:
        return 1.2
    if stated.startswith(text):
        return 1.0 if len(text) > 0.3 * len(stated) else 0.6
    if text.startswith(stated) and len(stated) > 0.5 * len(text):
        return 0.9
    if text in stated:
        return 0.8 if len(text) > 0.3 * len(stated) else 0.3
    common = _common_share(text, stated)
    return common if common > 0.6 else 0.0


def _common_share(first: str, other: str) -> float:
    """Share of three-letter pieces that two texts have in common."""
    pieces, others = ({text[i : i + 3] for i in range(max(len(text) - 2, 1))} for text in (first, other))
    return len(pieces & others) / max(len(pieces | others), 1)


def site_words(structured: Structured, url: str) -> set[str]:
    """Names of the site, squashed: what the page says and the labels of its host."""
    names = {structured.meta("og:site_name", "application-name", "apple-mobile-web-app-title", "twitter:site") or ""}
    names.add(plain(structured.article.get("publisher")) or "")
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    names.update(label for label in host.split(".") if label not in {"www", "com", "cn", "net", "org", "co", "uk"})
    return {word for word in map(squashed, names) if word}


def without_site(text: str, site: set[str]) -> str:
    """A stated title without the site's name and section: the longest part between bars, then less a last part."""
    text = max((part.strip() for part in BARS.split(text)), key=lambda part: len(squashed(part)), default=text)
    dashes = list(DASHES.finditer(text))
    if not dashes:
        return text.strip()
    if squashed(text[: dashes[0].start()]) in site:
        return text[dashes[0].end() :].strip()
    for dash in dashes:
        if _names_site(text[dash.end() :], site):
            return text[: dash.start()].strip()
    spaced = dashes[-1][0] != dashes[-1][0].strip()
    if spaced and len(squashed(text[dashes[-1].end() :])) <= 0.5 * len(squashed(text[: dashes[-1].start()])):
        return text[: dashes[-1].start()].strip()
    return text.strip()


def _names_site(text: str, site: set[str]) -> bool:
    name = squashed(text)
    if len(name) <= MAX_SITE and SITE_LIKE.search(text.strip()):
        return True
    return bool(name) and any(name == word or (word in name and len(word) > 0.4 * len(name)) for word in site)
