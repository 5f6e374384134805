"""Bytes and a template become values: template engine, generic article extraction, times, charsets.

Belongs here: pure functions from one page to what it says. Not here: fetching, storing, judging quality, clients of any
server. No page, however broken, raises: what cannot be parsed carries a problem code.
"""

from lakehouse.parse.charset import decode_page, is_html
from lakehouse.parse.judge import judge_template
from lakehouse.parse.page import GENERIC_VERSION, parse_page

__all__ = ["GENERIC_VERSION", "decode_page", "is_html", "judge_template", "parse_page"]
