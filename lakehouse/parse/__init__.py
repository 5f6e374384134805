"""Bytes and a template become values: template engine, generic article extraction, times, charsets.

Belongs here: pure functions from one page to what it says. Not here: fetching, storing, judging quality, clients of any
server. No page, however broken, raises: what cannot be parsed carries a problem code.

Names are loaded on first use: judging templates or deciding a charset must not wait for article extraction to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakehouse.parse.charset import decode_page, is_html
    from lakehouse.parse.judge import judge_template
    from lakehouse.parse.page import GENERIC_VERSION, parse_page

__all__ = ["GENERIC_VERSION", "decode_page", "is_html", "judge_template", "parse_page"]

HOMES = {
    "GENERIC_VERSION": "page",
    "decode_page": "charset",
    "is_html": "charset",
    "judge_template": "judge",
    "parse_page": "page",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
