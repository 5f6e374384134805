"""One page to its values: by a template, or by generic article extraction where there is none."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import lxml.html
import trafilatura

from lakehouse.model.record import Page, Parsed, TimeConfidence
from lakehouse.parse.charset import decode_page, is_html
from lakehouse.specs.template import TemplateSpec

GENERIC_VERSION = 1


def parse_page(page: Page, template: TemplateSpec | None, *, zone: ZoneInfo, language: str | None = None) -> Parsed:
    """Values of one page; `publish_time` is aware or None. Never raises: see `Parsed.problem`."""
    name, version = (template.ref, template.version) if template else (f"generic@{GENERIC_VERSION}", GENERIC_VERSION)
    if not page.body:
        return Parsed({}, {}, name, version, "empty_body", "the body has no bytes")
    if not is_html(page.body, page.media_type):
        return Parsed({}, {}, name, version, "not_html", f"media type {page.media_type or 'unknown'}")
    text, _, _ = decode_page(page.body, None, page.charset)
    try:
        tree = lxml.html.fromstring(text.encode("utf-8"), parser=lxml.html.HTMLParser(encoding="utf-8"))
        found = trafilatura.bare_extraction(tree, favor_precision=True, with_metadata=True, include_comments=False)
    except Exception as error:
        return Parsed({}, {}, name, version, "unreadable", repr(error))
    values: dict[str, Any] = dict.fromkeys(("title", "publish_time", "author", "origin", "body"))
    values["time_confidence"] = TimeConfidence.UNKNOWN
    if found is not None:
        values.update(title=found.title, author=found.author, body=found.text)
        if found.date:
            values["publish_time"] = datetime.fromisoformat(found.date).replace(tzinfo=zone)
            values["time_confidence"] = TimeConfidence.ABSOLUTE
    return Parsed(values, {}, name, version)
