"""A content hash of frames that depends on neither row order, nor column order, nor the engine that read them.

Each row becomes canonical bytes: for every column that is not null, in name order, the name, the length and the value.
Values are text for numbers and booleans, days since 1970 for dates, microseconds for timestamps, IEEE 754 bits for
floats, UTF-8 for strings, parts in order for lists, by key for maps, by name for structs. A row's hash is the first
16 bytes of BLAKE2b over them; a frame's hash is the sum of its rows' hashes modulo 2**128, so hashes of parts add up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.errors import DataError

MODULUS = 1 << 128
EMPTY_HASH = "0" * 32
BYTES_AT_ONCE = 64 << 20
ROWS_AT_ONCE = 65_536
NULL_PART = b"~"
BYTES = pa.large_binary()


def content_hash(frame: pa.Table) -> str:
    """32 hex characters: the sum of all row hashes modulo 2**128. An empty frame gives zeros.

    Columns that are null in a row do not count, so a new empty column changes nothing. Raises DataError for a column
    type that no table has, such as a naive timestamp.
    """
    total = 0
    for digest in row_digests(frame):
        total += int.from_bytes(digest)
    return f"{total % MODULUS:032x}"


def add_hashes(*hashes: str) -> str:
    """The content hash of frames put together, from their hashes."""
    return f"{sum(int(one, 16) for one in hashes) % MODULUS:032x}"


def row_digests(frame: pa.Table) -> Iterator[bytes]:
    """16 bytes a row, in the frame's order."""
    for part in _slices(frame):
        rows = canonical_rows(part)
        data = memoryview(rows.buffers()[2] or b"")
        bounds = memoryview(rows.buffers()[1]).cast("q")[rows.offset : rows.offset + len(rows) + 1]
        start = bounds[0]
        for end in bounds[1:]:
            yield hashlib.blake2b(data[start:end], digest_size=16).digest()
            start = end


def canonical_rows(frame: pa.Table) -> pa.Array:
    """The canonical bytes of each row, as one large_binary array."""
    columns = []
    for name in sorted(frame.column_names):
        column = frame.column(name)
        values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        encoded = _framed(_encode(values, name), name.encode() + b"=")
        columns.append(pc.fill_null(encoded, pa.scalar(b"", BYTES)))
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", BYTES))


def _slices(frame: pa.Table) -> Iterator[pa.Table]:
    if frame.num_rows == 0 or frame.num_columns == 0:
        return
    width = max(1, frame.nbytes // frame.num_rows)
    step = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // width))
    for start in range(0, frame.num_rows, step):
        yield frame.slice(start, step)


def _framed(values: pa.Array, prefix: bytes = b"") -> pa.Array:
    """`<prefix><length>:<bytes>` for each value; null stays null."""
    lengths = pc.binary_length(values).cast(pa.string()).cast(BYTES)
    return pc.binary_join_element_wise(
        pa.scalar(prefix, BYTES), lengths, pa.scalar(b":", BYTES), values, pa.scalar(b"", BYTES)
    )


def _encode(values: pa.Array, name: str) -> pa.Array:  # noqa: PLR0911 (one return a kind of type)
    """The value bytes of one column or part, as large_binary; null stays null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _encode(values.dictionary_decode(), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.large_string()).cast(BYTES)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return values.cast(BYTES)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _encode_list(values, name)
    if pa.types.is_map(kind):
        return _encode_map(values, name)
    if pa.types.is_struct(kind):
        return _encode_struct(values, name)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), BYTES)
    return _as_text(values, name).cast(BYTES)


def _as_text(values: pa.Array, name: str) -> pa.Array:
    kind = values.type
    if pa.types.is_floating(kind):
        # Adding zero turns -0.0 into 0.0; engines differ in keeping the sign.
        values = pc.add(values.cast(pa.float64()), 0.0).view(pa.int64())
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        values = values.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"column {name} has type {kind}, which no table holds; convert it before hashing")
    return values.cast(pa.large_string())


def _parts(values: pa.Array, name: str) -> pa.Array:
    """Encoded parts of a list or struct: framed, and null marked, since it stands for itself there."""
    return pc.fill_null(_framed(_encode(values, name)), pa.scalar(NULL_PART, BYTES))


def _joined(parts: pa.Array, offsets: pa.Array, nulls: pa.Array) -> pa.Array:
    """The parts of each row put together; null where `nulls` says so."""
    lists = pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), parts)
    joined = pc.binary_join(lists, pa.scalar(b"", BYTES))
    return pc.if_else(nulls, pa.scalar(None, BYTES), joined)


def _own_offsets(values: pa.Array) -> pa.Array:
    """Offsets that start at zero and skip what null rows may hold, matching `values.flatten()`."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])


def _encode_list(values: pa.Array, name: str) -> pa.Array:
    return _joined(_parts(values.flatten(), name), _own_offsets(values), values.is_null())


def _encode_map(values: pa.Array, name: str) -> pa.Array:
    entries = values.cast(pa.list_(pa.struct([("k", values.type.key_type), ("v", values.type.item_type)])))
    flat = entries.flatten()
    keys, items = _parts(flat.field(0), name), _parts(flat.field(1), name)
    encoded = pc.binary_join_element_wise(keys, items, pa.scalar(b"", BYTES))
    by_row = pa.table({"row": pc.list_parent_indices(entries), "entry": encoded})
    order = pc.sort_indices(by_row, sort_keys=[("row", "ascending"), ("entry", "ascending")])
    return _joined(encoded.take(order), _own_offsets(entries), values.is_null())


def _encode_struct(values: pa.Array, name: str) -> pa.Array:
    names = sorted(field.name for field in values.type)
    parts = []
    for part in names:
        encoded = _framed(_encode(pc.struct_field(values, part), f"{name}.{part}"), part.encode() + b"=")
        parts.append(pc.fill_null(encoded, pa.scalar(b"", BYTES)))
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", BYTES))
    return pc.if_else(values.is_null(), pa.scalar(None, BYTES), joined)
