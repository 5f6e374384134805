"""PyIceberg keeps a null list or map as null: its projection of lists and maps of structs makes them empty instead.

That would change rows in silence, when they are read and when they are written. Goes when PyIceberg keeps nulls itself;
a contract test says when that is.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowProjectionVisitor
from pyiceberg.types import ListType, MapType

_list = ArrowProjectionVisitor.list
_map = ArrowProjectionVisitor.map


def keep_nulls() -> None:
    """Make PyIceberg's projection keep null lists and maps; doing it twice changes nothing."""
    ArrowProjectionVisitor.list = _project_list  # type: ignore[method-assign]
    ArrowProjectionVisitor.map = _project_map  # type: ignore[method-assign]


def _project_list(
    self: ArrowProjectionVisitor, list_type: ListType, list_array: pa.Array | None, value_array: pa.Array | None
) -> pa.Array | None:
    return _with_nulls_of(list_array, _list(self, list_type, list_array, value_array))


def _project_map(
    self: ArrowProjectionVisitor,
    map_type: MapType,
    map_array: pa.Array | None,
    key_result: pa.Array | None,
    value_result: pa.Array | None,
) -> pa.Array | None:
    return _with_nulls_of(map_array, _map(self, map_type, map_array, key_result, value_result))


def _with_nulls_of(source: Any, projected: Any) -> pa.Array | None:
    """`projected` with the nulls of `source`. Made from its buffers, since kernels drop the field ids in its type."""
    if source is None or projected is None or source.null_count == projected.null_count:
        return projected
    before = pa.array([True] * projected.offset, pa.bool_())
    validity = pa.concat_arrays([before, source.is_valid()]).buffers()[1]
    return pa.Array.from_buffers(
        projected.type,
        len(projected),
        [validity, projected.buffers()[1]],
        offset=projected.offset,
        children=[projected.values],
    )
