"""The language of a text, decided by its letters first and common words after; no model, so never a surprise."""

from __future__ import annotations

import re
from collections import Counter

SAMPLE = 4000
MIN_LETTERS = 8
SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
WORD = re.compile("[a-z\u00df-\u024f']+")
WORDS = {
    "en": "the of and to in is that for it was on with as be by at from this are have not but they which you his",
    "de": "der die das und ist nicht ein eine zu den mit von auf für dem sich des auch wird im als werden bei",
    "fr": "le la les et des est un une que pour dans qui sur pas du au ce avec il plus par sont nous mais",
    "es": "el la los las de y que en un una es por con para del se no su al como más pero fue este",
    "it": "il lo la gli e di che un una per con del della non è sono da nel anche come dei più ma alla",
    "pt": "o a os as de e que em um uma para com não do da por mais dos como foi ao pelo mas são",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als bij naar maar dan",
}
COMMON = {language: frozenset(words.split()) for language, words in WORDS.items()}
KANA_SHARE = 0.1


def language_of(text: str | None) -> str | None:
    """Two-letter code of the language a text is mostly written in, or None for too little text."""
    sample = (text or "")[:SAMPLE]
    counts = {language: len(pattern.findall(sample)) for language, pattern in SCRIPTS}
    latin = len(LATIN.findall(sample))
    if counts["ja"] > KANA_SHARE * max(counts["zh"], 1):
        counts["ja"] += counts["zh"]
    else:
        counts["ja"] = 0
    best = max(counts, key=lambda language: counts[language])
    # One Han character says about as much as a short word of latin letters.
    if counts[best] * (3 if best in {"zh", "ja", "ko"} else 1) >= max(latin, 1):
        return best if counts[best] * 2 >= MIN_LETTERS else None
    return _latin_language(sample) if latin >= MIN_LETTERS else None


def _latin_language(sample: str) -> str | None:
    words = Counter(WORD.findall(sample.lower()))
    hits = {language: sum(words[word] for word in common) for language, common in COMMON.items()}
    best = max(hits, key=lambda language: (hits[language], language == "en"))
    return best if hits[best] > 0 else None
