"""One page to its values: by a template, or by generic article extraction where there is none."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from lakehouse.model.record import Page, Parsed
from lakehouse.parse.article import TooMuchText, extract_article
from lakehouse.parse.charset import decode_page, is_binary, is_html
from lakehouse.parse.dom import parse_tree
from lakehouse.parse.functions import StepContext
from lakehouse.parse.template import parse_by_template
from lakehouse.parse.times import TimeReader
from lakehouse.specs.template import TemplateSpec

GENERIC_VERSION = 1
GENERIC = f"generic@{GENERIC_VERSION}"
HAN = re.compile("[\u4e00-\u9fff]")
CJK_SAMPLE = 20_000


def parse_page(
    page: Page,
    template: TemplateSpec | None,
    *,
    zone: ZoneInfo,
    language: str | None = None,
    relative_times: bool = True,
) -> Parsed:
    """Values of one page; `publish_time` is aware, in the clock that the page shows, or None.

    Never raises for a page: what cannot be parsed has a `problem` from `model.record.REJECT_REASONS`. `zone` is that of
    times shown without one; `relative_times` False leaves out what is told from the fetch (`3小时前`).
    """
    try:
        return _parse(page, template, zone, language, relative_times)
    except TooMuchText as error:
        return _failed(template, "parser_limit", str(error))
    except (RecursionError, MemoryError) as error:
        return _failed(template, "parser_limit", f"parsing needs too much: {type(error).__name__}")
    except Exception as error:  # noqa: BLE001
        # A page is data: whatever trips the parser over must not stop the other pages of its day.
        return _failed(template, "unreadable", f"{type(error).__name__}: {error}"[:500])


def _parse(
    page: Page, template: TemplateSpec | None, zone: ZoneInfo, language: str | None, relative_times: bool
) -> Parsed:
    if not page.body.strip():
        return _failed(template, "empty_body", "the body holds nothing")
    document = _is_document(page, template)
    if not document and not is_html(page.body, page.media_type):
        return _failed(template, "not_html", f"a page of media type {page.media_type or 'unknown'} holds no markup")
    text, _, _ = decode_page(page.body, None, page.charset)
    tree = parse_tree(text)
    if tree.root is None and (not document or tree.problem == "parser_limit"):
        return _failed(template, tree.problem or "unreadable", tree.detail or "")
    reader = TimeReader(zone, page.collect_time, language or _language(text), relative_times)
    if template is not None:
        return parse_by_template(text, tree.root, template, StepContext(reader, page.url))
    assert tree.root is not None  # noqa: S101
    values, evidence = extract_article(tree.root, reader, page.url)
    return Parsed(values, evidence, GENERIC, GENERIC_VERSION)


def _is_document(page: Page, template: TemplateSpec | None) -> bool:
    """Whether a page is no HTML but text that the template's regex or JSONPath rules can read."""
    if template is None or is_binary(page.body, page.media_type):
        return False
    rules = [rule for field in template.fields.values() for rule in field.rules]
    return any(rule.jsonpath is not None or rule.regex is not None for rule in rules)


def _language(text: str) -> str | None:
    """`zh` where Han characters are many: some forms of times mean other things there."""
    sample = text[:CJK_SAMPLE]
    if sample.isascii():
        return None
    return "zh" if len(HAN.findall(sample)) > len(sample) * 0.01 else None


def _failed(template: TemplateSpec | None, problem: str, detail: str) -> Parsed:
    name, version = (template.ref, template.version) if template else (GENERIC, GENERIC_VERSION)
    return Parsed({}, {}, name, version, problem, detail)
