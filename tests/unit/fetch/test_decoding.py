from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import FetchError, FetchRefused
from lakehouse.fetch.decoding import decode_content

LIMIT = 10_000


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


@given(st.binary(max_size=3000))
def test_encodings_are_undone(data: bytes) -> None:
    assert decode_content(data, "", LIMIT) == data
    assert decode_content(gzip.compress(data), "gzip", LIMIT) == data
    assert decode_content(zlib.compress(data), "deflate", LIMIT) == data
    assert decode_content(raw_deflate(data), "Deflate", LIMIT) == data
    assert decode_content(gzip.compress(zlib.compress(data)), "deflate, gzip", LIMIT) == data
    assert decode_content(gzip.compress(data) + gzip.compress(data), "x-gzip", LIMIT) == data * 2


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"0" * 50_000_000, mtime=0), "gzip"),
        (gzip.compress(b"0" * 6_000, mtime=0) * 2, "gzip"),
        (gzip.compress(gzip.compress(b"0" * 5_000_000, mtime=0), mtime=0), "gzip, gzip"),
        (zlib.compress(b"0" * (LIMIT + 1)), "deflate"),
        (raw_deflate(b"0" * (LIMIT + 1)), "deflate"),
    ],
)
def test_bombs_stop_at_the_limit(body: bytes, encoding: str) -> None:
    with pytest.raises(FetchRefused) as caught:
        decode_content(body, encoding, LIMIT)
    assert caught.value.reason == "too_large"


def test_the_limit_itself_is_allowed() -> None:
    assert len(decode_content(gzip.compress(b"0" * LIMIT), "gzip", LIMIT)) == LIMIT


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"x" * 500, mtime=0)[:-6], "gzip"),
        (b"<html>not packed", "gzip"),
        (b"\xff\xff\xff", "deflate"),
        (b"x", "br"),
        (b"x", "gzip, gzip, gzip, gzip"),
    ],
)
def test_what_cannot_be_undone_says_so(body: bytes, encoding: str) -> None:
    with pytest.raises(FetchError) as caught:
        decode_content(body, encoding, LIMIT)
    assert caught.value.reason == "bad_encoding"
