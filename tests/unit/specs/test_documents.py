"""YAML files as plain values: what is read, what is refused, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.specs.documents import MAX_FILE_BYTES, parse_document, path_text, read_document, read_path


def said(raw: bytes) -> list[str]:
    return [str(problem) for problem in parse_document(raw, "f.yaml")[1]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("5", 5),
        ("-3", -3),
        ("012", "012"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", ".5"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ('!!int "5"', 5),
        ("[a, {b: 1}]", ["a", {"b": 1}]),
        ("|\n  one\n  two", "one\ntwo\n"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_values_mean_what_is_written(text: str, value: Any) -> None:
    document, problems = parse_document(f"key: {text}\n".encode(), "f.yaml")
    assert problems == []
    assert document is not None
    assert document.data == {"key": value}
    assert type(document.data["key"]) is type(value)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    document, problems = parse_document(b"\xef\xbb\xbfa: 1\n", "f.yaml")
    assert problems == []
    assert document is not None
    assert document.data == {"a": 1}


def test_an_alias_gives_the_value_again() -> None:
    document, problems = parse_document(b"a: &x {b: [1]}\nc: *x\n", "f.yaml")
    assert problems == []
    assert document is not None
    assert document.data == {"a": {"b": [1]}, "c": {"b": [1]}}


MEND = "mend the line; quotes and brackets must close, items of one list stand below each other"
QUOTE = "put it in quotes, or mend the line"
NO_TAGS = "remove the tag; tags are not allowed"
NO_NUMBER = "is no number that can be kept exactly; put it in quotes for text"
COLON = "put text that holds a colon in quotes, and check the indentation"
SIGN = "put text that begins with such a sign in quotes"
ONE = "one file holds one declaration: remove the second '---'"
DEEP = "no declared file needs that depth"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "f.yaml: is empty; write the declaration, or remove the file"),
        (b"# only a comment\n---\n", "f.yaml: is empty; write the declaration, or remove the file"),
        (b"\n- a\n- b\n", "f.yaml:2: holds a list; write a mapping of keys to values"),
        (b"text", "f.yaml:1: holds the text 'text'; write a mapping of keys to values"),
        (b"a: 1\nb: \xb5\n", "f.yaml:2: is not UTF-8: byte 0xB5 at offset 8; save the file as UTF-8"),
        ("a: 中文".encode("gbk"), "f.yaml:1: is not UTF-8: byte 0xD6 at offset 3; save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "f.yaml:1: is not UTF-8: byte 0xFF at offset 0; save the file as UTF-8"),
        (
            b"a: 1\nb: x\x00",
            "f.yaml:2: holds the control character U+0000; remove it, or write it as an escape in double quotes",
        ),
        (b"a:\n\t- b\n", "f.yaml:2: is indented with a tab; indent with spaces"),
        (b"a: b: c\n", f"f.yaml:1: is not YAML: mapping values are not allowed in this context at column 5; {COLON}"),
        (
            b"a: @b\n",
            f"f.yaml:1: is not YAML: found character that cannot start any token at column 4; {SIGN}",
        ),
        (b"a: [1\nb: 2\n", f"f.yaml:2: is not YAML: did not find expected ',' or ']' at column 2; {MEND}"),
        (b"a: 'x\n", f"f.yaml:1: is not YAML: found unexpected end of stream at column 1; {MEND}"),
        (
            b"a: 1\n---\nb: 2\n",
            f"f.yaml:2: is not YAML: but found another document at column 1; {ONE}",
        ),
        (b"a: *b\n", "f.yaml:1: is not YAML: found undefined alias at column 4; put text that begins with * in quotes"),
        (b"[" * 100_000, f"f.yaml:1: is not YAML: exceeded maximum nesting depth at column 1001; {DEEP}"),
        (b"a: 1\nb: 2\na: 3\n", "f.yaml:3: a: key 'a' stands twice, first in line 1; keep one of them"),
        (b"t:\n  - x: 1\n    x: 2\n", "f.yaml:3: t[0].x: key 'x' stands twice, first in line 2; keep one of them"),
        (b'"a": 1\na: 2\n', "f.yaml:2: a: key 'a' stands twice, first in line 1; keep one of them"),
        (b"5: a\n", f"f.yaml:1: has '5' as a key; keys are text: {QUOTE}"),
        (b"a: {b}\n? [c]\n: d\n", f"f.yaml:2: has a list or mapping as a key; keys are text: {QUOTE}"),
        (
            b"a: &x {b: 1}\nc:\n  <<: *x\n",
            "f.yaml:3: c: has a merge key <<; write the keys out; merging is not allowed",
        ),
        (
            b"a: !!python/object/apply:os.system [x]\n",
            f"f.yaml:1: a: has the tag '!!python/object/apply:os.system'; {NO_TAGS}",
        ),
        (b"a: !!binary aGk=\n", f"f.yaml:1: a: has the tag '!!binary'; {NO_TAGS}"),
        (b"a: !!set {b}\n", f"f.yaml:1: a: has the tag '!!set'; {NO_TAGS}"),
        (b"a: !!map [b]\n", f"f.yaml:1: a: has the tag '!!map'; {NO_TAGS}"),
        (b"a: !!int x\n", f"f.yaml:1: a: 'x' {NO_NUMBER}"),
        (b"a: 12345678901234567890\n", f"f.yaml:1: a: '12345678901234567890' {NO_NUMBER}"),
        (b"a: 1e999\n", f"f.yaml:1: a: '1e999' {NO_NUMBER}"),
        (b"a: &x [*x]\n", f"f.yaml:1: a[0][0]: is nested deeper than 40; {DEEP}"),
        (b"a: " + b"[" * 41 + b"]" * 41, f"f.yaml:1: a[0][0]: is nested deeper than 40; {DEEP}"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(raw: bytes, message: str) -> None:
    assert said(raw) == [message]


def test_aliases_cannot_make_a_small_file_huge() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    document, problems = parse_document("\n".join(lines).encode(), "f.yaml")
    assert document is None
    assert [str(p) for p in problems] == ["f.yaml:1: grows to more than 50,000 values; write it without aliases"]


def test_all_that_is_wrong_in_one_file_is_named() -> None:
    assert said(b"a: 1\na: 2\n5: 3\nb: !!set {}\n") == [
        "f.yaml:2: a: key 'a' stands twice, first in line 1; keep one of them",
        "f.yaml:3: has '5' as a key; keys are text: put it in quotes, or mend the line",
        "f.yaml:4: b: has the tag '!!set'; remove the tag; tags are not allowed",
    ]


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: " + b"x" * MAX_FILE_BYTES)
    assert [str(p) for p in read_document(tmp_path / "f.yaml", "f.yaml")[1]] == [
        "f.yaml: is larger than 1,000,000 bytes; declared files are small: check what it holds"
    ]


def test_a_file_that_cannot_be_opened_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").symlink_to(tmp_path / "gone.yaml")
    assert [str(p) for p in read_document(tmp_path / "f.yaml", "f.yaml")[1]] == [
        "f.yaml: cannot be read: No such file or directory; make it a file that you may read"
    ]


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.yaml")
    assert [str(p) for p in read_document(tmp_path / "f.yaml", "f.yaml")[1]] == [
        "f.yaml: is not a plain file; make it a file that you may read"
    ]


def test_a_key_that_a_terminal_would_obey_is_shown_as_escapes() -> None:
    assert path_text(("a\x1b[31m\n", 0)) == '["a\\x1b[31m\\n"][0]'


def test_a_problem_has_the_line_of_the_nearest_thing_above_it() -> None:
    document, _ = parse_document(b"a:\n  - b: 1\n  - c:\n      d: 2\n", "f.yaml")
    assert document is not None
    lines = [
        document.line_of(path) for path in ((), ("a",), ("a", 1), ("a", 1, "c", "d"), ("a", 1, "c", "x"), ("a", 7))
    ]
    assert lines == [1, 1, 3, 4, 3, 1]


@given(st.lists(st.one_of(st.integers(0, 99), st.text("abz_09- 中é|", min_size=1, max_size=10)), max_size=5))
def test_paths_as_text_can_be_read_back(parts: list[str | int]) -> None:
    assert read_path(path_text(tuple(parts))) == tuple(parts)


@given(st.binary(max_size=80) | st.text(":-[]{}&*!|>'\"#, \n\tab1~", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    document, problems = parse_document(raw, "f.yaml")
    assert document is not None or problems
    assert all(str(problem).startswith("f.yaml") for problem in problems)
