"""Rows and frames to Arrow, exactly as a schema version declares them: nothing is dropped or coerced in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from lakehouse.specs.schema import SchemaSpec


def to_arrow(rows: Iterable[Mapping[str, Any]] | pl.DataFrame | pa.Table, spec: SchemaSpec) -> pa.Table:
    """A frame with exactly the columns of `spec` (see `registry.arrow_schema`), in its order.

    Timestamps become UTC microseconds, decimals stay exact, `json` takes text or plain values. Raises SchemaMismatch
    that names field, expected, found and file for: extra or missing columns, null in a required column, naive times,
    NaN or infinity, a number that does not fit, NUL or a lone surrogate in text, a value outside `values`.
    """
    raise NotImplementedError
