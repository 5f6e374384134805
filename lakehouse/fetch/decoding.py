"""Content-Encoding undone in bounded steps: a few bytes that claim to be gigabytes stop at the limit."""

from __future__ import annotations

import zlib

from lakehouse.errors import FetchError, FetchRefused

ACCEPTED = "gzip, deflate"
LAYERS = 3


def decode_content(data: bytes, content_encoding: str, limit: int) -> bytes:
    """`data` without its content encodings; raises FetchRefused over `limit` bytes, FetchError if unreadable."""
    encodings = [name.strip().lower() for name in content_encoding.split(",") if name.strip()]
    encodings = [name for name in encodings if name not in {"identity", "none", "utf-8"}]
    if len(encodings) > LAYERS:
        raise FetchRefused("bad_encoding", f"refused a body encoded {len(encodings)} times over")
    for name in reversed(encodings):
        if name in {"gzip", "x-gzip"}:
            data = _inflate_members(data, limit)
        elif name == "deflate":
            data = _inflate_deflate(data, limit)
        else:
            raise FetchError("bad_encoding", f"body has the content encoding {name!r}, which was not asked for")
    return data


def _inflate_members(data: bytes, limit: int) -> bytes:
    """All gzip members; trailing bytes that are no member are dropped, as browsers do."""
    pieces = []
    size = 0
    while data:
        piece, rest = _inflate(data, zlib.MAX_WBITS | 16, limit - size)
        pieces.append(piece)
        size += len(piece)
        data = rest if rest.startswith(b"\x1f\x8b") else b""
    return b"".join(pieces)


def _inflate_deflate(data: bytes, limit: int) -> bytes:
    """zlib's format, or the bare stream that some servers send under the same name."""
    if not data:
        return data
    try:
        return _inflate(data, zlib.MAX_WBITS, limit)[0]
    except FetchRefused:
        raise
    except FetchError:
        return _inflate(data, -zlib.MAX_WBITS, limit)[0]


def _inflate(data: bytes, wbits: int, limit: int) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(wbits)
    try:
        piece = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise FetchError("bad_encoding", f"body cannot be decompressed: {error}") from error
    if len(piece) > limit:
        raise FetchRefused("too_large", "refused a body over the size limit after decompression")
    if not stream.eof:
        raise FetchError("bad_encoding", "compressed body ends too early")
    return piece, stream.unused_data
