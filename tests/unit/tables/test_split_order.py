"""Every row goes to its own partition, however many there are and however their names look."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.specs.loader import load_catalog
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.split import split_frame

DAY = date(2026, 3, 9)
names = st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True)
keys = st.tuples(names, st.integers(0, 40), st.integers(1, 3))


@pytest.fixture(scope="module")
def outcomes() -> SchemaSpec:
    return load_catalog(Path("catalog")).table_schema("clean.outcomes", None)


def frame_of(rows: list[tuple[str, int, int]], spec: SchemaSpec) -> pa.Table:
    return pa.table(
        {
            "source": pa.array([source for source, _, _ in rows], pa.string()),
            "dt": pa.array([DAY - timedelta(days=days) for _, days, _ in rows], pa.date32()),
            "schema_version": pa.array([version for _, _, version in rows], pa.int32()),
            **{
                field.name: pa.array(
                    [f"{row}" if field.type == "string" else number for number, row in enumerate(rows)],
                    pa.string() if field.type == "string" else pa.int32(),
                )
                for field in spec.fields
            },
        }
    )


def check(rows: list[tuple[str, int, int]], spec: SchemaSpec) -> None:
    slices = split_frame(frame_of(rows, spec), spec)
    wanted = Counter((source, DAY - timedelta(days=days), version) for source, days, version in rows)
    assert [part.key for part in slices] == sorted(wanted)
    for part in slices:
        frame = part.frame
        found = set(zip(*(frame.column(name).to_pylist() for name in ("source", "dt", "schema_version")), strict=True))
        assert found == {part.key}
        assert frame.num_rows == wanted[part.key]


def test_hundreds_of_sources_keep_their_own_rows(outcomes: SchemaSpec) -> None:
    rows = [(f"real_{'x' * (number % 17)}{number * 37 % 400:03d}", number % 5, 1) for number in range(1200)]
    check(rows, outcomes)


@given(st.lists(keys, min_size=1, max_size=150))
def test_any_rows_are_split_by_their_keys(outcomes: SchemaSpec, rows: list[tuple[str, int, int]]) -> None:
    check(rows, outcomes)
