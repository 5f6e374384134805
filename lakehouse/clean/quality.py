"""How good a body is, from its own text alone."""

from __future__ import annotations

import re

MARKS = re.compile(
    "[,.;:!?\"'()\\-\u2013\u2014\u2018\u2019\u201c\u201d\u2026，。、；：！？（）《》〈〉「」『』【】…—·～]"
)
LENGTH_WEIGHT = 0.6
MARK_WEIGHT = 0.4
FULL_LENGTH = 300
CHARS_PER_MARK = 50


def count_chars(text: str | None) -> int:
    """Characters without white space."""
    return sum(map(len, text.split())) if text else 0


def count_marks(text: str | None) -> int:
    """Punctuation marks, western and CJK."""
    return len(MARKS.findall(text)) if text else 0


def count_paragraphs(text: str | None) -> int:
    """Lines that hold text."""
    return sum(1 for line in text.split("\n") if line.strip()) if text else 0


def body_quality(text: str | None) -> float:
    """0 to 1: 0.6 · min(chars/300, 1) + 0.4 · min(marks / max(chars/50, 1), 1), rounded to 4 places."""
    chars = count_chars(text)
    if chars == 0:
        return 0.0
    length = min(chars / FULL_LENGTH, 1.0)
    marks = min(count_marks(text) / max(chars / CHARS_PER_MARK, 1.0), 1.0)
    return round(LENGTH_WEIGHT * length + MARK_WEIGHT * marks, 4)
