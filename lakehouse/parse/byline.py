"""Who wrote a page and where it comes from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import lxml.etree

from lakehouse.parse.blocks import Block
from lakehouse.parse.dom import node_path, text_of
from lakehouse.parse.heading import squashed
from lakehouse.parse.structured import Structured, names_in

MAX_NAME = 60
SHORT_BLOCK = 260.0
AUTHOR_ZH = re.compile(
    r"(?:作\s*者|(?<![\u4e00-\u9fff])(?:记\s*者|撰\s*文|撰\s*稿|采\s*写|编\s*译|文))\s*[:：/／丨|]\s*"
    r"(?P<name>[^\s|｜,，;；。:：()（）【】<>《》“”]{2,20}"
    r"(?:[ 、][^\s|｜,，;；。:：()（）【】<>《》\d]{2,6}(?![^\s]{0,4}[:：]))*)"
)
REPORTER_ZH = re.compile(
    r"(?:本报|本刊|本网|报|社|网)?(?:见习|实习|特约)?记者[\s:：]+"
    r"(?P<name>[\u4e00-\u9fff·]{2,5}(?:[ 、][\u4e00-\u9fff·]{2,4})*)"
)
AUTHOR_EN = re.compile(
    r"(?:^\s*(?:(?:written|posted|story|words|reported)\s+)?|(?:19|20)\d\d\W{1,3})by[:\s]+(?P<name>[A-Z][^|•·\n]{2,80})",
    re.IGNORECASE,
)
ORIGIN_ZH = re.compile(
    r"(?:来\s*源|稿\s*源|出\s*处|转载自|信息来源|文章来源|新闻来源)\s*[:：]\s*(?P<name>[^\s|｜,，;；。【】<>《》]{2,30})"
)
ORIGIN_EN = re.compile(r"^\s*(?:source|via)\s*[:：]\s*(?P<name>[^|•\n]{2,60})", re.IGNORECASE)
TAIL_LABEL = re.compile(
    r"(?:发布时间|时间|日期|作者|编辑|责任编辑|责编|记者|浏览|点击|阅读|评论|字号|分享|来源|20\d\d)\s*[:：]?.*$"
)
AUTHOR_METAS = (
    "author", "article:author", "dc.creator", "dcterms.creator", "byl", "parsely-author", "sailthru.author",
    "article:author_name", "citation_author",
)  # fmt: skip
ORIGIN_METAS = ("source", "article:source", "dc.source", "mediaid", "og:source", "contentsource", "source_name")
AUTHOR_CLASS = re.compile(r"(?:^|[\s_-])(?:author|byline|writer|reporter|zuozhe)(?:[\s_-]|name|$)", re.IGNORECASE)
ORIGIN_CLASS = re.compile(r"(?:^|[\s_-])(?:source|laiyuan|origin|from|media-?name)(?:[\s_-]|name|$)", re.IGNORECASE)
NOT_A_NAME = re.compile(
    r"https?:|www\.|@|^\d+$|^(?:admin|administrator|editor|staff|author|none|null|unknown|本站编辑|佚名)$",
    re.IGNORECASE,
)
MONTH = (
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
DATES = re.compile(rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+{MONTH}|{MONTH}\.?\s\d|\d{{4}}|\d{{1,2}}:\d{{2}}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Name:
    """A name with the rule that gave it, the node and the raw text."""

    text: str
    rule: str
    raw: str
    node: str | None = None


def find_author(structured: Structured, near: Iterable[Block], site: Collection[str]) -> Name | None:
    """The author: labelled near the title, else as the page states it, else by class; never the `site` itself."""
    blocks = list(near)
    labelled = _labelled(blocks, (AUTHOR_ZH, AUTHOR_EN), "text: author")
    if labelled is not None:
        return labelled
    stated = [name for name in names_in(structured.article.get("author")) if _is_author(name, site)]
    if stated:
        return Name(_shortened(", ".join(stated[:5])), "jsonld: author", ", ".join(stated))
    for meta in AUTHOR_METAS:
        for content in structured.metas.get(meta, ()):
            if _is_author(content, site):
                return Name(_shortened(content), f"meta: {meta}", content)
    return _by_class(blocks, AUTHOR_CLASS, "class: author") or _labelled(blocks, (REPORTER_ZH,), "text: reporter")


def find_origin(structured: Structured, near: Iterable[Block]) -> Name | None:
    """The source that the page names (来源), not the site itself."""
    blocks = list(near)
    found = _labelled(blocks, (ORIGIN_ZH, ORIGIN_EN), "text: origin")
    if found is not None:
        return found
    for meta in ORIGIN_METAS:
        content = structured.meta(meta)
        if content and _is_name(content):
            return Name(_shortened(content), f"meta: {meta}", content)
    return _by_class(blocks, ORIGIN_CLASS, "class: source")


def _labelled(blocks: Iterable[Block], patterns: tuple[re.Pattern[str], ...], rule: str) -> Name | None:
    for pattern in patterns:
        for block in blocks:
            match = pattern.search(block.text) if block.weight <= SHORT_BLOCK else None
            if match is None:
                continue
            name = _cut(match["name"])
            if _is_name(name):
                return Name(name, rule, block.text, node_path(block.node))
    return None


def _cut(name: str) -> str:
    """A name without what follows it on the same line: a next label, a date."""
    name = TAIL_LABEL.sub("", name)
    dated = DATES.search(name)
    return (name[: dated.start()] if dated else name).strip(" \t,，、:：-–—|·•")


def _by_class(blocks: Iterable[Block], pattern: re.Pattern[str], rule: str) -> Name | None:
    for block in blocks:
        if block.weight > SHORT_BLOCK / 2:
            continue
        for element in _with_inner(block.node):
            if pattern.search(element.get("class") or "") or pattern.search(element.get("id") or ""):
                raw = text_of(element)
                name = _cut(re.sub(r"^(?:by|来源|作者)[:：\s]+", "", raw, flags=re.IGNORECASE))
                if _is_name(name):
                    return Name(name, rule, raw, node_path(element))
    return None


def _with_inner(node: lxml.etree._Element) -> Iterable[lxml.etree._Element]:
    """The element and a few below it."""
    for _, element in zip(range(12), node.iter("*"), strict=False):
        yield element


def _is_name(text: str | None) -> bool:
    text = (text or "").strip()
    return 1 < len(text) <= MAX_NAME and NOT_A_NAME.search(text) is None


def _is_author(text: str, site: Collection[str]) -> bool:
    name = squashed(text)
    return _is_name(text) and not any(word.startswith(name) for word in site)


def _shortened(text: str) -> str:
    return " ".join(re.sub(r"^(?:by|来源|作者)[:：\s]+", "", text.strip(), flags=re.IGNORECASE).split())[:MAX_NAME]
