from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.errors import SchemaMismatch
from lakehouse.specs.loader import load_catalog
from lakehouse.tables.columns import arrow_schema
from lakehouse.tables.normalize import check_frame, to_arrow
from tests.unit.tables.kernel_lake import DAY, ROOT, row, rows, schema

NAN, INF = float("nan"), float("inf")


def test_rows_become_the_declared_types() -> None:
    frame = to_arrow(
        [row(1), {**row(2), **dict.fromkeys(("text", "at", "price", "names", "heads", "inner"))}], schema()
    )
    assert frame.schema == arrow_schema(schema())
    assert frame.column("at").type == pa.timestamp("us", "UTC")
    assert frame.column("price").to_pylist() == [Decimal("1.00"), None]
    assert frame.column("extra").to_pylist() == ['{"n":1}', '{"n":2}']
    assert frame.column("heads").to_pylist() == [[("k", "v"), ("a", None)], None]


def test_an_empty_list_of_rows_is_an_empty_frame() -> None:
    assert to_arrow([], schema()).equals(rows(0))


def test_frames_of_rows_arrow_and_polars_are_the_same() -> None:
    frame = rows(5)
    assert to_arrow(frame, schema()).equals(frame)
    plain = schema(
        1,
        {"batch_id": "string", "text": "string", "at": "timestamp", "names": "list<string>", "price": "decimal(12,2)"},
    )
    narrow = to_arrow([{name: row(n)[name] for name in arrow_schema(plain).names} for n in range(3)], plain)
    wide = pl.from_arrow(narrow)
    assert isinstance(wide, pl.DataFrame)
    assert to_arrow(wide, plain).to_pylist() == narrow.to_pylist()


@pytest.mark.parametrize(
    ("field", "value", "expected", "found"),
    [
        ("text", "a\0b", "string", "NUL"),
        ("text", "a\ud800b", "string", "lone surrogate"),
        ("text", b"bytes", "string", "bytes"),
        ("text", 1, "string", "int 1"),
        ("small", 2**31, "int", "out of range"),
        ("small", True, "int", "bool"),
        ("small", 1.0, "int", "float"),
        ("big", 2**63, "long", "out of range"),
        ("ratio", NAN, "double", "not None but float nan"),
        ("ratio", INF, "double", "inf"),
        ("ratio", 2**53 + 1, "double", "not exact"),
        pytest.param("ratio", 10**400, "double", "not exact", id="ratio-huge"),
        pytest.param("big", 10**5000, "long", "out of range", id="big-huge"),
        ("ratio", "1", "double", "str"),
        ("yes", 1, "boolean", "int"),
        ("day", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "date", "datetime"),
        ("day", "2024-01-01", "date", "str"),
        ("at", dt.datetime(2024, 1, 1), "timestamp", "naive"),  # noqa: DTZ001
        ("at", dt.date(2024, 1, 1), "timestamp", "date"),
        ("raw", "text", "binary", "str"),
        ("extra", "{", "json", "not JSON"),
        ("extra", "NaN", "json", "not JSON"),
        ("extra", {"n": NAN}, "json", "nan"),
        ("extra", {"n": object()}, "json", "object"),
        ("price", 1.5, "decimal", "float"),
        ("price", Decimal("1.005"), "decimal", "too precise"),
        ("price", Decimal("1e10"), "decimal", "out of range"),
        ("price", Decimal("Infinity"), "decimal", "out of range"),
        ("names", "abc", "list<string>", "str"),
        ("names", ["a\0"], "string", "NUL"),
        ("heads", {1: "a"}, "string", "int"),
        ("heads", [("a", "b"), ("a", "c")], "map<string,string>", "twice"),
        ("inner", {"a": 1}, "struct", "dict"),
        ("batch_id", None, "required", "null"),
        ("source", None, "required", "null"),
    ],
)
def test_a_value_that_does_not_fit_is_named(field: str, value: Any, expected: str, found: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        to_arrow([row(0), row(1, **{field: value})], schema())
    message = str(caught.value)
    assert f"field {field} (row 1): expected" in message
    assert expected in message.partition("expected")[2].partition("found")[0]
    assert found in message.partition("found")[2]
    assert "catalog/schemas/things/v1.yaml" in message


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("small", pa.array([2**40], pa.uint64())),
        ("big", pa.array([2**64 - 1], pa.uint64())),
        ("small", pa.array([1.0])),
        ("ratio", pa.array([NAN])),
        ("ratio", pa.array([INF])),
        ("ratio", pa.array([2**53 + 1])),
        ("at", pa.array([1], pa.timestamp("ns", "UTC"))),
        ("at", pa.array([1], pa.timestamp("us"))),
        ("at", pa.array([1000], pa.timestamp("ns"))),
        ("text", pa.array(["a\0"])),
        ("text", pa.array([b"\xff"])),
        ("price", pa.array([1.5])),
        ("price", pa.array([Decimal("1.005")], pa.decimal128(10, 3))),
        ("day", pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))),
        ("batch_id", pa.array([None], pa.string())),
    ],
)
def test_an_arrow_column_that_does_not_fit_is_named(column: str, values: pa.Array) -> None:
    frame = rows(1)
    broken = frame.set_column(frame.column_names.index(column), column, values)
    with pytest.raises(SchemaMismatch, match=f"field {column}.*v1.yaml"):
        to_arrow(broken, schema())


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("small", pa.array([7], pa.uint64())),
        ("at", pa.array([1_000_000_000], pa.timestamp("ns", "Asia/Shanghai"))),
        ("text", pa.array(["x"]).dictionary_encode()),
        ("text", pa.array(["x"], pa.large_string())),
        ("names", pa.array([["x"]], pa.large_list(pa.large_string()))),
        ("price", pa.array([Decimal("1.5")], pa.decimal256(40, 1))),
        ("text", pa.array([None], pa.null())),
    ],
)
def test_an_arrow_column_that_loses_nothing_is_taken(column: str, values: pa.Array) -> None:
    frame = rows(1)
    given = frame.set_column(frame.column_names.index(column), column, values)
    taken = to_arrow(given, schema())
    assert taken.schema == frame.schema
    found, wanted = taken.column(column).to_pylist()[0], values.to_pylist()[0]
    assert found == wanted


def test_extra_missing_and_doubled_columns_are_named() -> None:
    with pytest.raises(SchemaMismatch, match=r"field colour \(row 0\): expected no such column"):
        to_arrow([row(0, colour="red")], schema())
    lacking = row(0)
    del lacking["price"]
    with pytest.raises(SchemaMismatch, match=r"field price \(row 1\): expected decimal\(12,2\), found no such column"):
        to_arrow([row(0), lacking], schema())
    with pytest.raises(SchemaMismatch, match="field source: expected string, found no such column"):
        to_arrow(pl.DataFrame({"text": ["a"]}), schema())
    frame = rows(1)
    with pytest.raises(SchemaMismatch, match="twice"):
        to_arrow(frame.append_column("text", frame.column("text")), schema())


def test_allowed_values_are_kept_to() -> None:
    spec = load_catalog(ROOT / "catalog").schema("articles")
    confidence = next(field for field in spec.fields if field.name == "time_confidence")
    narrow = spec.model_copy(update={"fields": (confidence,), "sort": (), "frame": "none"})
    good = {"source": "aa", "dt": DAY, "schema_version": 1, "time_confidence": 2}
    frame = to_arrow([good], narrow)
    with pytest.raises(SchemaMismatch, match=r"expected one of \[0, 1, 2\], found int 3"):
        to_arrow([{**good, "time_confidence": 3}], narrow)
    broken = frame.set_column(3, "time_confidence", pa.array([3], pa.int32()))
    with pytest.raises(SchemaMismatch, match=r"expected one of \[0, 1, 2\]"):
        to_arrow(broken, narrow)


def test_a_record_carries_the_version_it_is_written_as() -> None:
    frame = rows(1)
    record = schema(2, {"batch_id": "string"}, frame="record")
    values = dict.fromkeys(arrow_schema(record).names, "x") | {
        "dt": DAY, "schema_version": 1, "url_rules_version": 1, "template_version": 1, "tags": [], "flags": [],
        "collect_time": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    }  # fmt: skip
    assert frame.num_rows == 1
    with pytest.raises(SchemaMismatch, match="field schema_version: expected 2, found 1"):
        to_arrow([values], record)


def test_a_committed_frame_is_checked_against_all_versions() -> None:
    specs = (schema(1, {"batch_id": "string", "n": "int"}), schema(2, {"batch_id": "string", "n": "long"}))
    old = to_arrow([{"source": "aa", "dt": DAY, "schema_version": 1, "batch_id": "b", "n": 1}], specs[0])
    assert check_frame(old, specs).column("n").type == pa.int64()
    with pytest.raises(SchemaMismatch, match="field n: expected long, found string"):
        check_frame(old.set_column(4, "n", pa.array(["1"])), specs)
    with pytest.raises(SchemaMismatch, match="field dt: expected date, required, found no such column"):
        check_frame(old.drop(["dt"]), specs)
    with pytest.raises(SchemaMismatch, match="field batch_id: expected string, required, found null"):
        check_frame(old.set_column(3, "batch_id", pa.array([None], pa.string())), specs)


FLOATS = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))


@settings(deadline=None)
@given(st.text(), FLOATS, st.integers(-(2**63), 2**63 - 1))
def test_whatever_fits_comes_back_as_it_was(text: str, ratio: float | None, big: int) -> None:
    values = row(0, text=text, ratio=ratio, big=big)
    if "\0" in text:
        with pytest.raises(SchemaMismatch):
            to_arrow([values], schema())
        return
    found = to_arrow([values], schema()).to_pylist()[0]
    assert (found["text"], found["ratio"], found["big"]) == (text, ratio, big)
