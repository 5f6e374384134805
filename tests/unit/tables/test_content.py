from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.errors import DataError
from lakehouse.tables.content import EMPTY_HASH, add_hashes, canonical_rows, content_hash
from tests.unit.tables.kernel_lake import rows


def test_the_hash_never_changes_its_meaning() -> None:
    frame = pa.table(
        {
            "n": pa.array([1, None], pa.int32()),
            "t": ["é", ""],
            "at": pa.array([dt.datetime(2024, 5, 1, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(2024, 5, 1), None]),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "yes": [True, None],
            "tags": pa.array([["a", None], []], pa.list_(pa.string())),
            "heads": pa.array([[("b", "2"), ("a", None)], None], pa.map_(pa.string(), pa.string())),
            "inner": pa.array([{"y": "q", "x": 1}, None], pa.struct([("y", pa.string()), ("x", pa.int32())])),
            "half": [0.5, None],
            "body": pa.array([b"\x00\xff", None], pa.binary()),
        }
    )
    first, second = canonical_rows(frame).to_pylist()
    assert first == (
        b"at=16:1714521600000000body=2:\x00\xffday=5:19844half=19:4602678819172646912heads=10:1:a~1:b1:2"
        b"inner=10:x=1:1y=1:qn=1:1price=4:1.50t=2:\xc3\xa9tags=4:1:a~yes=4:true"
    )
    assert second == b"t=0:tags=0:"
    assert content_hash(frame) == "735d905d6ba101140bde87206f408448"
    assert content_hash(pa.table({"a": ["x"]})) == "e6c92bf7bce247d76cff8da81bac2afa"


def test_neither_order_of_rows_nor_of_columns_nor_chunks_matter() -> None:
    frame = rows(200)
    order = list(range(200))
    random.Random(1).shuffle(order)
    shuffled = frame.take(order).select(list(reversed(frame.column_names)))
    chunked = pa.concat_tables([frame.slice(0, 7), frame.slice(7, 0), frame.slice(7)])
    assert content_hash(frame) == content_hash(shuffled) == content_hash(chunked)


def test_parts_add_up() -> None:
    frame = rows(10)
    assert add_hashes(content_hash(frame.slice(0, 4)), content_hash(frame.slice(4))) == content_hash(frame)
    assert content_hash(frame.slice(0, 0)) == EMPTY_HASH == add_hashes()


def test_a_row_twice_is_not_a_row_once() -> None:
    frame = rows(1)
    assert content_hash(pa.concat_tables([frame, frame])) != content_hash(frame) != EMPTY_HASH


def test_an_empty_column_changes_nothing() -> None:
    frame = rows(3)
    assert content_hash(frame.append_column("later", pa.nulls(3, pa.string()))) == content_hash(frame)


def test_types_of_other_engines_hash_alike() -> None:
    frame = rows(5)
    other = frame.cast(
        pa.schema(
            [
                ("text", pa.large_string()) if field.name == "text" else
                ("at", pa.timestamp("us", "Asia/Shanghai")) if field.name == "at" else
                ("small", pa.int64()) if field.name == "small" else
                ("names", pa.large_list(pa.large_string())) if field.name == "names" else
                (field.name, field.type)
                for field in frame.schema
            ]
        )
    )  # fmt: skip
    assert content_hash(other) == content_hash(frame)
    flat = frame.drop(["heads"])
    polars = pl.from_arrow(flat)
    assert isinstance(polars, pl.DataFrame)
    assert content_hash(polars.to_arrow()) == content_hash(flat)


def test_maps_hash_by_key_and_lists_in_order() -> None:
    kind = pa.map_(pa.string(), pa.string())
    one = pa.table({"m": pa.array([[("a", "1"), ("b", "2")], None, []], kind)})
    other = pa.table({"m": pa.array([[("b", "2"), ("a", "1")], None, []], kind)})
    assert content_hash(one) == content_hash(other)
    ordered = pa.table({"l": [["a", "b"]]})
    assert content_hash(ordered) != content_hash(pa.table({"l": [["b", "a"]]}))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": ["x"], "b": [None]}, {"a": [None], "b": ["x"]}),
        ({"a": [["xy"]]}, {"a": [["x", "y"]]}),
        ({"a": [[None]]}, {"a": [[]]}),
        ({"a": [[]]}, {"a": [None]}),
        ({"a": ["1"], "b": ["2"]}, {"a": ["12"], "b": [""]}),
        ({"a": [["~"]]}, {"a": [[None]]}),
        ({"a": [True]}, {"a": [False]}),
    ],
)
def test_different_rows_hash_differently(left: dict[str, list[object]], right: dict[str, list[object]]) -> None:
    assert content_hash(pa.table(left)) != content_hash(pa.table(right))


def test_negative_zero_is_zero() -> None:
    assert content_hash(pa.table({"a": [-0.0]})) == content_hash(pa.table({"a": [0.0]}))


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(DataError, match="column at has type timestamp"):
        content_hash(pa.table({"at": pa.array([1], pa.timestamp("us"))}))


TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=8)


@settings(deadline=None)
@given(TEXTS, st.randoms())
def test_slices_and_orders_of_any_texts_add_up(texts: list[str | None], shuffler: random.Random) -> None:
    frame = pa.table(
        {"t": pa.array(texts, pa.string()), "l": pa.array([[one] for one in texts], pa.list_(pa.string()))}
    )
    order = list(range(len(texts)))
    shuffler.shuffle(order)
    parts = [content_hash(frame.take([number])) for number in order]
    assert add_hashes(*parts) == content_hash(frame)
