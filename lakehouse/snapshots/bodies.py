"""Page bodies: stored compressed with what they are, read back only if they are what was stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.errors import SnapshotCorrupt
from lakehouse.snapshots.codec import compress, decode
from lakehouse.snapshots.objects import SHA256, ObjectStore


@dataclass(frozen=True, slots=True)
class BodyInfo:
    """What stands beside a stored body; `sha256` is that of the body as it came."""

    sha256: str
    crawled_at: datetime
    media_type: str | None
    charset: str | None


def put_body(
    store: ObjectStore, key: str, body: bytes, *, crawled_at: datetime, media_type: str | None, charset: str | None
) -> str:
    """Store `body` (as it came, decompressed) under `key`; gives the sha256 of `body`."""
    about = BodyInfo(hashlib.sha256(body).hexdigest(), crawled_at, media_type, charset)
    put_packed_body(store, key, compress(body), about)
    return about.sha256


def put_packed_body(store: ObjectStore, key: str, packed: bytes, about: BodyInfo) -> None:
    """Store a body that `compress` already packed."""
    metadata = {
        "crawled-at": about.crawled_at.astimezone(UTC).isoformat(),
        "media-type": about.media_type or "application/octet-stream",
        "encoding": about.charset or "unknown",
        SHA256: about.sha256,
    }
    store.put(key, packed, content_type="application/zstd", metadata=metadata)


def read_body(store: ObjectStore, key: str, sha256: str | None = None) -> bytes:
    """The body under `key` as it came; raises UnknownNameError if absent, SnapshotCorrupt if it is not the body.

    `sha256` is what a row says of the body; without it the object's own metadata is believed.
    """
    stored = store.get(key)
    expected = sha256 or stored.metadata.get(SHA256)
    try:
        body = decode(stored.data)
    except SnapshotCorrupt as error:
        raise SnapshotCorrupt(f"object {key}: {error}; look for an older version of it in the bucket") from error
    if expected is None:
        return body
    found = hashlib.sha256(body).hexdigest()
    if found != expected:
        raise SnapshotCorrupt(
            f"object {key} holds a body with sha256 {found}, expected {expected}; it will not be parsed: look for an "
            "older version of it in the bucket"
        )
    return body
