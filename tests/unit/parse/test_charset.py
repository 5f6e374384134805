"""Charsets: every voice is heard, the bytes have the last word, nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.parse.charset import decode_page, is_binary, is_html, known_charset

CHINESE = "《晚报》讯：今天上午，大家在广场上见面，气氛热烈。"


@pytest.mark.parametrize(
    ("text", "encoding", "header", "source", "expected"),
    [
        (CHINESE, "utf-8", None, None, "utf-8"),
        (CHINESE, "utf-8", "gb2312", None, "utf-8"),
        (CHINESE, "utf-8", "iso-8859-1", "gbk", "utf-8"),
        (CHINESE, "gbk", "gb2312", None, "gb18030"),
        (CHINESE, "gbk", "utf-8", None, "gb18030"),
        (CHINESE, "gbk", "iso-8859-1", None, "gb18030"),
        (CHINESE, "gbk", None, None, "gb18030"),
        ("联通", "gbk", "gb2312", None, "gb18030"),
        ("联通", "gbk", None, "gbk", "gb18030"),
        ("㐂𠀀", "gb18030", "gb2312", None, "gb18030"),
        ("繁體中文的新聞網頁，今天天氣很好。", "big5", "big5", None, "big5hkscs"),
        ("日本語のニュースです。今日は晴れ。", "shift_jis", "shift_jis", None, "cp932"),
        ("“Café” – naïve", "cp1252", "iso-8859-1", None, "cp1252"),
        ("plain words", "ascii", None, None, "utf-8"),
        ("wide words and 字", "utf-16", None, None, "utf-16-le"),
        ("wide words without a mark", "utf-16-le", None, None, "utf-16-le"),
    ],
)
def test_text_is_read_as_it_was_written(
    text: str, encoding: str, header: str | None, source: str | None, expected: str
) -> None:
    read, charset, votes = decode_page(text.encode(encoding), header, source)
    assert read == text
    assert charset == expected
    assert "bytes" in votes


def test_the_meta_element_is_heard_and_a_comment_is_not() -> None:
    page = f'<!-- <meta charset="utf-8"> --><meta charset=gbk><p>{CHINESE}'.encode("gbk")
    read, charset, votes = decode_page(page)
    assert CHINESE in read
    assert (charset, votes["meta"]) == ("gb18030", "gb18030")


def test_the_xml_declaration_is_heard() -> None:
    _, charset, votes = decode_page(f'<?xml version="1.0" encoding="gb2312"?><a>{CHINESE}</a>'.encode("gbk"))
    assert (charset, votes["xml"]) == ("gb18030", "gb18030")


def test_a_few_broken_bytes_do_not_change_the_charset() -> None:
    read, charset, _ = decode_page(f"<meta charset=utf-8>{CHINESE * 40}".encode() + b"\xff\xfe<p>end", None)
    assert charset == "utf-8"
    assert read.startswith("<meta charset=utf-8>" + CHINESE)


def test_a_cut_last_character_is_still_utf8() -> None:
    _, charset, _ = decode_page(CHINESE.encode()[:-1], "gb2312")
    assert charset == "utf-8"


@pytest.mark.parametrize("label", ["", None, "nonsense", "rot13", "hex", "idna", "utf-7", "unicode_escape", "x" * 999])
def test_a_label_that_no_page_can_mean_is_none(label: str | None) -> None:
    assert known_charset(label) is None


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.7 text",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"PK\x03\x04x",
        b"GIF89a",
        b"a\x00b\x00\x00\x01" * 99,
    ],
)
def test_files_are_not_text(body: bytes) -> None:
    assert is_binary(body)
    assert not is_html(body, "text/html")


@pytest.mark.parametrize(
    ("body", "media_type", "expected"),
    [
        (b"<html><body>x", None, True),
        (b"<p>x", "text/plain", True),
        (b"<rss><item/></rss>", "application/xml", True),
        (b'{"html": "<p>"}', None, True),
        (b'{"a": 1}', None, False),
        (b'{"a": "<b"}', "application/json", False),
        (b"just words", "text/html", False),
    ],
)
def test_what_counts_as_html(body: bytes, media_type: str | None, expected: bool) -> None:
    assert is_html(body, media_type) is expected


@given(
    st.binary(max_size=300), st.none() | st.text(max_size=12), st.none() | st.sampled_from(["gbk", "big5", "utf-16"])
)
def test_no_bytes_and_labels_raise(body: bytes, header: str | None, source: str | None) -> None:
    text, charset, votes = decode_page(body, header, source)
    assert isinstance(text, str)
    assert known_charset(charset) is not None
    assert set(votes) <= {"bom", "header", "meta", "xml", "source", "bytes"}


@given(st.text(min_size=1, max_size=200).filter(lambda text: not text.startswith("\ufeff")))
def test_utf8_wins_whatever_is_declared(text: str) -> None:
    try:
        body = text.encode("utf-8")
    except UnicodeEncodeError:
        return
    if any(char >= "\u0800" for char in text) and body.count(0) == 0:
        assert decode_page(body, "gb2312", "shift_jis")[0] == text
