from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from datetime import date

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import InvariantError, SnapshotCorrupt
from lakehouse.model.fetch import Fetch
from lakehouse.snapshots.codec import compress, decode
from lakehouse.snapshots.keys import batch_key, checked_key, snapshot_key


def test_a_key_says_source_day_page_and_fetch_and_nothing_of_the_url(make_fetch: Callable[..., Fetch]) -> None:
    fetch = make_fetch(1, url="http://a/secret?token=x", media_type="application/pdf")
    base = f"snap/news/2026/03/01/{fetch.url_fp}-{fetch.fetch_id}"
    assert snapshot_key(fetch, "served") == f"{base}-served.pdf.zst"
    assert snapshot_key(fetch, "rendered") == f"{base}-rendered.html.zst"
    assert snapshot_key(make_fetch(1, media_type="../../x"), "served").endswith("-served.bin.zst")
    assert batch_key("news", date(2026, 3, 1), "ab") == "batch/news/2026/03/01/ab.json.zst"


@pytest.mark.parametrize(
    "key",
    [
        "../x",
        "a/../x",
        "/etc/passwd",
        "a//b",
        "a/./b",
        "a/.hidden",
        "",
        "a\\b",
        "a\x00b",
        "a/b\n",
        "a b",
        "x" * 1001,
        "页",
    ],
)
def test_keys_that_could_leave_the_store_are_refused(key: str) -> None:
    with pytest.raises(InvariantError):
        checked_key(key)


@given(st.text(max_size=40))
def test_no_allowed_key_has_a_segment_that_moves(key: str) -> None:
    try:
        checked_key(key)
    except InvariantError:
        return
    assert all(re.fullmatch(r"[\w=-][\w.=-]*", segment, re.ASCII) for segment in key.split("/"))


@given(st.binary(max_size=2000))
def test_compressing_is_undone(data: bytes) -> None:
    assert decode(compress(data)) == data


def test_zstd_gzip_and_plain_are_read_alike() -> None:
    body = "<html>云".encode() * 50
    assert decode(gzip.compress(body)) == body
    assert decode(body) == body
    assert decode(zstandard.ZstdCompressor(write_content_size=False).compress(body)) == body
    assert decode(compress(b"one") + compress(b"two")) == b"onetwo"
    assert decode(b"") == b""


@pytest.mark.parametrize(
    "packed",
    [
        compress(b"x" * 5000)[:-3],
        gzip.compress(b"x" * 5000, mtime=0)[:-9],
        b"\x28\xb5\x2f\xfdno",
        compress(b"x") + b"y",
    ],
)
def test_cut_off_bodies_are_corrupt(packed: bytes) -> None:
    with pytest.raises(SnapshotCorrupt):
        decode(packed)


def test_a_flipped_bit_is_corrupt() -> None:
    packed = bytearray(compress(bytes(range(256)) * 40))
    packed[-1] ^= 1
    with pytest.raises(SnapshotCorrupt):
        decode(bytes(packed))
