"""One rule of a template on one page: what it finds, and where."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import lxml.etree
import regex
from jsonpath_ng.parser import parse as parse_jsonpath
from parsel.csstranslator import HTMLTranslator

from lakehouse.parse.blocks import read_outline
from lakehouse.parse.dom import node_path
from lakehouse.parse.functions import MAX_MATCHES, REGEX_SECONDS
from lakehouse.parse.structured import Structured, names_in, read_structured
from lakehouse.specs.template import KINDS, Rule

MAX_RAW = 2000
ELEMENT = type(lxml.etree.Element("x"))


@dataclass(frozen=True, slots=True)
class Found:
    """One value of a rule as text, with the path of its node where it has one."""

    text: str
    node: str | None = None


class PageView:
    """One page in all the forms that rules look at; each form is made once, when it is first needed."""

    def __init__(self, text: str, root: lxml.etree._Element | None) -> None:
        self.text = text
        self.root = root

    @cached_property
    def structured(self) -> Structured:
        """Meta elements and JSON-LD."""
        return read_structured(self.root) if self.root is not None else Structured()

    @cached_property
    def documents(self) -> list[Any]:
        """JSON documents: the page itself where it is one, else those in script elements."""
        texts = [self.text]
        if self.root is not None:
            texts += [script.text or "" for script in self.root.iter("script") if "json" in (script.get("type") or "")]
        found = []
        for text in texts:
            if text.lstrip()[:1] in {"{", "["}:
                try:
                    found.append(json.loads(text, strict=False))
                except (ValueError, RecursionError):
                    continue
        return found


def rule_kind(rule: Rule) -> tuple[str, str]:
    """The kind of a rule and its expression."""
    return next((kind, getattr(rule, kind)) for kind in KINDS if getattr(rule, kind) is not None)


@lru_cache(maxsize=2048)
def css_as_xpath(selector: str) -> str:
    """The XPath of a CSS selector, with `::text` and `::attr(name)`; raises cssselect's SelectorError."""
    return str(HTMLTranslator().css_to_xpath(selector))


@lru_cache(maxsize=2048)
def compiled_xpath(expression: str) -> lxml.etree.XPath:
    """A compiled XPath without regular expressions, which nothing could stop; raises lxml's XPathError."""
    return lxml.etree.XPath(expression, regexp=False)


@lru_cache(maxsize=512)
def compiled_jsonpath(expression: str) -> Any:
    """A compiled JSONPath; raises jsonpath-ng's errors."""
    return parse_jsonpath(expression)


def find_values(rule: Rule, view: PageView, remove: Sequence[str] = ()) -> list[Found]:
    """All that a rule finds on a page, in order, without empty texts.

    Raises TimeoutError where a regex takes too long; an expression that fails on this page finds nothing.
    """
    kind, expression = rule_kind(rule)
    if kind in {"css", "xpath"}:
        path = css_as_xpath(expression) if kind == "css" else expression
        found = list(_from_nodes(path, rule, view, remove))
    elif kind == "regex":
        found = list(_from_regex(expression, view.text))
    elif kind == "meta":
        found = [Found(content) for content in view.structured.metas.get(expression.lower(), ())]
    elif kind == "jsonld":
        found = [Found(text) for text in _from_jsonld(expression, view.structured)]
    else:
        found = list(_from_jsonpath(expression, view.documents))
    return [value for value in found if value.text.strip()]


def _from_nodes(path: str, rule: Rule, view: PageView, remove: Sequence[str]) -> Iterator[Found]:
    if view.root is None:
        return
    try:
        result = compiled_xpath(path)(view.root)
    except lxml.etree.XPathError:
        return
    for item in (result if isinstance(result, list) else [result])[:MAX_MATCHES]:
        if isinstance(item, ELEMENT):
            yield Found(_node_text(item, rule.attr, remove), node_path(item))
        elif isinstance(item, str):
            parent = item.getparent() if hasattr(item, "getparent") else None
            yield Found(str(item), node_path(parent) if parent is not None else None)
        elif isinstance(item, float):
            yield Found(f"{item:g}")
        elif isinstance(item, bool):
            yield Found("true" if item else "false")


def _node_text(node: lxml.etree._Element, attribute: str | None, remove: Sequence[str]) -> str:
    """An attribute, or the text of a node with its blocks as lines."""
    if attribute is not None:
        return node.get(attribute) or ""
    skip: set[Any] = set()
    for selector in remove:
        below = compiled_xpath(css_as_xpath(selector))(node)
        skip.update(below if isinstance(below, list) else ())
    return "\n".join(block.text for block in read_outline(node, skip).blocks)


def _from_regex(pattern: str, text: str) -> Iterator[Found]:
    """Group 1 where the pattern has groups, entities read as characters."""
    for number, match in enumerate(regex.finditer(pattern, text, timeout=REGEX_SECONDS)):
        if number >= MAX_MATCHES:
            return
        yield Found(html.unescape(match[1 if match.re.groups else 0] or ""))


def _from_jsonld(path: str, structured: Structured) -> list[str]:
    """Values below the article node by a dotted path such as `author.name`; any node where there is no article."""
    for node in [structured.article, *structured.nodes]:
        values: list[Any] = [node]
        for key in path.split("."):
            inner = [part for value in values for part in (value if isinstance(value, list) else [value])]
            values = [value[key] for value in inner if isinstance(value, dict) and key in value]
        texts = [name for value in values for name in names_in(value)]
        if texts:
            return texts
    return []


def _from_jsonpath(path: str, documents: Sequence[Any]) -> Iterator[Found]:
    for document in documents:
        matches = compiled_jsonpath(path).find(document)[:MAX_MATCHES]
        for match in matches:
            value = match.value
            if isinstance(value, dict | list):
                yield Found(json.dumps(value, ensure_ascii=False), str(match.full_path))
            elif value is not None:
                yield Found(str(value), str(match.full_path))
        if matches:
            return
