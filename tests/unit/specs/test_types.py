"""Column types as text and as trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.specs.types import (
    MAX_DEPTH,
    SCALARS,
    Decimal,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    TypeProblem,
    TypeTree,
    parse_type,
)

ALL = (
    "types are string, int, long, float, double, boolean, date, timestamp, binary, json, decimal(P,S), list<T>, "
    "map<string,T>, struct<name: T, …>"
)
DIGITS = "precision goes from 1 to 38 and scale from 0 to the precision, such as decimal(18,2)"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        *((name, Scalar(name)) for name in SCALARS),
        ("decimal(18,2)", Decimal(18, 2)),
        (" decimal( 38 , 0 ) ", Decimal(38, 0)),
        ("list<string>", ListOf(Scalar("string"))),
        ("map<string,string>", MapOf(Scalar("string"))),
        ("map< string , list<decimal(3,1)> >", MapOf(ListOf(Decimal(3, 1)))),
        ("struct<a: int, b: string>", StructOf((("a", Scalar("int")), ("b", Scalar("string"))))),
        ("list<struct<at:timestamp,to:list<string>>>", None),
    ],
)
def test_a_type_is_read(text: str, tree: TypeTree | None) -> None:
    found = parse_type(text)
    assert tree is None or found == tree
    assert parse_type(str(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"it ends where a type belongs; {ALL}"),
        ("strng", "'strng' is no type; did you mean string?"),
        ("String", "'String' is no type; did you mean string?"),
        ("integer", "'integer' is no type; did you mean int?"),
        ("bigint", "'bigint' is no type; did you mean long?"),
        ("datetime", "'datetime' is no type; did you mean timestamp?"),
        ("text", "'text' is no type; did you mean string?"),
        ("array<int>", "'array' is no type; did you mean list<T>?"),
        ("qqqq", f"'qqqq' is no type; {ALL}"),
        ("list", "it ends where '<' belongs; write list<T>"),
        ("list<>", f"there is '>' where a type belongs; {ALL}"),
        ("list<int", "it ends where '>' belongs; write list<T>"),
        ("list<int>>", "goes on with '>' after a whole type; write one type"),
        ("int int", "goes on with 'int' after a whole type; write one type"),
        ("map<int,string>", "has map keys of type 'int'; map keys are strings: map<string,T>"),
        ("map<string>", "there is '>' where ',' belongs; write map<string,T>"),
        ("decimal", "it ends where '(' belongs; write decimal(P,S)"),
        ("decimal(39,2)", f"asks for decimal(39,2); {DIGITS}"),
        ("decimal(2,3)", f"asks for decimal(2,3); {DIGITS}"),
        ("decimal(0,0)", f"asks for decimal(0,0); {DIGITS}"),
        ("decimal(a,1)", "there is 'a' where a whole number belongs; write decimal(P,S), such as decimal(18,2)"),
        ("decimal(9999,1)", "there is '9999' where a whole number belongs; write decimal(P,S), such as decimal(18,2)"),
        ("struct<>", f"there is '>' where a field name belongs; {ALL}"),
        ("struct<a int>", "there is 'int' where ':' belongs; write struct<name: T, …>"),
        ("struct<a: int, a: int>", "names the field 'a' twice; give each field of a struct its own name"),
        ("struct<A: int>", "names a field 'A'; field names are lower-case letters, digits and _"),
        ("int; drop table", f"';' belongs to no type; {ALL}"),
        ("４", f"'４' belongs to no type; {ALL}"),
    ],
)
def test_a_wrong_type_says_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(TypeProblem) as caught:
        parse_type(text)
    assert str(caught.value) == f"type {text!r}: {message}"


@pytest.mark.parametrize("text", ["list<" * 9 + "int" + ">" * 9, "list<" * 100_000, "x" * 100_000, "x" * 900])
def test_a_huge_type_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(TypeProblem) as caught:
        parse_type(text)
    assert len(str(caught.value)) < 500


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TREES = st.recursive(
    st.one_of(
        st.sampled_from(SCALARS).map(Scalar),
        st.tuples(st.integers(1, 38), st.integers(0, 38)).filter(lambda p: p[1] <= p[0]).map(lambda p: Decimal(*p)),
    ),
    lambda inner: st.one_of(
        inner.map(ListOf),
        inner.map(MapOf),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda d: StructOf(tuple(d.items()))),
    ),
    max_leaves=5,
)


def depth(tree: TypeTree) -> int:
    match tree:
        case ListOf(inner) | MapOf(inner):
            return 1 + depth(inner)
        case StructOf(fields):
            return 1 + max(depth(inner) for _, inner in fields)
        case _:
            return 1


@given(TREES.filter(lambda tree: depth(tree) <= MAX_DEPTH))
def test_writing_and_reading_are_inverse(tree: TypeTree) -> None:
    assert parse_type(str(tree)) == tree


@given(st.text("intlsmap<>(),: _9", max_size=30))
def test_any_text_is_a_type_or_is_refused(text: str) -> None:
    tree: TypeTree | None
    try:
        tree = parse_type(text)
    except TypeProblem:
        tree = None
    assert tree is None or parse_type(str(tree)) == tree
