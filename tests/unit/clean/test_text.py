"""Text in normal form, its quality, language and simhash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.clean.language import language_of
from lakehouse.clean.quality import body_quality, count_chars, count_marks, count_paragraphs
from lakehouse.clean.simhash import distance, simhash
from lakehouse.clean.text import clean_line, clean_text, clean_value


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  a \t b\r\n\r\n \u3000c\u200b\ufeff\n", "a b\nc"),
        ("a\x00b\x1f\ud800c", "abc"),
        ("e\u0301", "é"),
        ("一\u2028二", "一\n二"),
        ("", ""),
    ],
)
def test_text_has_one_form(raw: str, expected: str) -> None:
    assert clean_text(raw) == expected


def test_letters_and_digits_have_one_width_and_punctuation_stays() -> None:
    assert clean_line("ＡＢ１２：（甲），\n乙　丙") == "AB12：（甲）， 乙 丙"


def test_values_are_cleaned_by_field() -> None:
    assert clean_value("title", " Ａ\nb ") == "A b"
    assert clean_value("body", " Ａ\nb ") == "Ａ\nb"
    assert clean_value("author", "  ") is None
    assert clean_value("tags", [" a ", "", None]) == ["a"]
    assert clean_value("views", 3) == 3


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing_and_the_result_can_be_stored(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once
    assert clean_line(clean_line(text)) == clean_line(text)
    assert "\x00" not in once
    once.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, 0.0),
        (" \n ", 0.0),
        ("字" * 300, 0.6),
        ("字" * 150, 0.3),
        ("字" * 294 + "，。；：！？", 1.0),
        ("字" * 597 + "，。！", round(0.6 + 0.4 * 3 / 12, 4)),
        ("字。", round(0.6 * 2 / 300 + 0.4, 4)),
    ],
)
def test_quality_weighs_length_and_punctuation(text: str | None, expected: float) -> None:
    assert body_quality(text) == expected


def test_counts() -> None:
    assert (count_chars("a b\nc"), count_marks("a, b。“c”"), count_paragraphs("a\n\n b \n")) == (3, 4, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天天气很好，大家都出门了。", "zh"),
        ("苹果发布 iPhone 15 Pro Max，售价不变，大家反应平平。", "zh"),
        ("今日はとても良い天気です。散歩に行きましょう。", "ja"),
        ("오늘은 날씨가 아주 좋습니다.", "ko"),
        ("The weather is fine today, and everybody went out for a walk.", "en"),
        ("Le temps est beau et les enfants sont dans le jardin avec nous.", "fr"),
        ("Das Wetter ist schön und die Kinder sind mit uns in dem Garten.", "de"),
        ("El tiempo es bueno y los niños están en el jardín con la abuela.", "es"),
        ("Сегодня хорошая погода, все вышли гулять.", "ru"),
        ("12345 67890", None),
        ("", None),
        (None, None),
    ],
)
def test_languages(text: str | None, expected: str | None) -> None:
    assert language_of(text) == expected


BODY = "河上的老桥今天重新开放，数百名居民一早就来到桥头，等着走过去看看对岸的变化。工程师说，桥面换了新的木板。" * 3


def test_near_texts_have_near_simhashes() -> None:
    first, other = simhash(BODY), simhash(BODY.replace("数百名", "几百名"))
    far = simhash("股市周一收跌，分析师说原因是利率，投资者等待央行的消息，成交量也比上周少了许多。" * 4)
    assert first is not None
    assert other is not None
    assert far is not None
    assert len(first) == 16
    assert distance(first, other) < 10 < distance(first, far)
    assert distance(first, first) == 0
    assert simhash("  。") is None


def test_the_simhash_never_changes_its_meaning() -> None:
    assert simhash("The old bridge opened again.") == simhash("the OLD bridge, opened again!")
    assert simhash("The old bridge opened again.") == "dcb3165a07516d5c"
