"""Text in one normal form: no control or invisible characters, plain blanks, one width for letters and digits."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\ufffe\uffff]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
BLANKS = re.compile(r"[^\S\n]+")
BREAKS = re.compile("\r\n?|[\u2028\u2029\x85]")
BLANK_LINES = re.compile(r"\n\s*\n+")
FULL_WIDTH = {
    **{code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))},
    0x3000: 0x20,
}
ONE_LINE_FIELDS = ("title", "author", "origin")


def clean_text(text: str) -> str:
    """`text` in NFC without control and invisible characters; blanks collapsed, one line break between paragraphs."""
    text = BREAKS.sub("\n", text)
    text = CONTROL.sub("", INVISIBLE.sub("", text))
    text = BLANKS.sub(" ", unicodedata.normalize("NFC", text))
    return BLANK_LINES.sub("\n", "\n".join(line.strip() for line in text.split("\n"))).strip()


def clean_line(text: str) -> str:
    """`text` on one line, its full-width letters, digits and blanks at normal width; punctuation stays as it is."""
    return " ".join(clean_text(text.translate(FULL_WIDTH)).split())


def clean_value(name: str, value: object) -> object:
    """The value of one field in normal form; empty text becomes None, lists lose their empty items."""
    if isinstance(value, str):
        return (clean_line(value) if name in ONE_LINE_FIELDS else clean_text(value)) or None
    if isinstance(value, list | tuple):
        return [item for item in (clean_value(name, part) for part in value) if item is not None]
    return value
