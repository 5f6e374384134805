"""Compression of stored bytes: written as zstd; zstd, gzip and plain are read alike."""

from __future__ import annotations

import gzip
import zlib

import zstandard

from lakehouse.errors import SnapshotCorrupt

LEVEL = 6
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b\x08"


def compress(data: bytes) -> bytes:
    """`data` as one zstd frame with its length and checksum inside."""
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True).compress(data)


def decode(data: bytes) -> bytes:
    """The bytes before compression, told by their first bytes; raises SnapshotCorrupt when they cannot be decoded."""
    if data.startswith(ZSTD_MAGIC):
        return _unpack_zstd(data)
    if data.startswith(GZIP_MAGIC):
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise SnapshotCorrupt(f"{len(data)} stored bytes look like gzip and cannot be decoded: {error}") from error
    return data


def _unpack_zstd(data: bytes) -> bytes:
    pieces = []
    rest = data
    while rest:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            pieces.append(frame.decompress(rest))
        except zstandard.ZstdError as error:
            raise SnapshotCorrupt(f"{len(data)} stored bytes look like zstd and cannot be decoded: {error}") from error
        # The library gives what it has of a frame that was cut off, without a word.
        if not frame.eof:
            raise SnapshotCorrupt(f"{len(data)} stored bytes look like zstd and end too early")
        rest = frame.unused_data
    return b"".join(pieces)
