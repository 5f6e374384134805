"""The object store seam: what every store promises; `stores` implements it over a folder and over MinIO."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from lakehouse.errors import ConflictError

SHA256 = "sha256"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: `size` in stored bytes, `modified` in UTC. Listings may leave `metadata` empty."""

    key: str
    size: int
    modified: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The stored bytes of an object and its metadata (names in lower case)."""

    data: bytes
    metadata: Mapping[str, str]


class ObjectStore(Protocol):
    """Adds and reads objects; nothing is overwritten and nothing is deleted.

    All methods raise UnavailableError when the store does not answer or refuses the credentials.
    """

    def put(self, key: str, data: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Store `data`. The same content under the same key is no error and changes nothing.

        Content is the same when `metadata["sha256"]` is, else when the bytes are; other content raises ConflictError.
        """

    def get(self, key: str) -> StoredObject:
        """The object under `key`; raises UnknownNameError if there is none."""

    def head(self, key: str) -> ObjectInfo | None:
        """What is known of the object under `key`, or None."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, in key order."""


def stamped(data: bytes, metadata: Mapping[str, str]) -> dict[str, str]:
    """`metadata` with lower-case names, ASCII values, and the sha256 of the content, which `put` compares."""
    clean = {name.lower(): value.encode("ascii", "replace").decode() for name, value in metadata.items()}
    return {SHA256: hashlib.sha256(data).hexdigest(), **clean}


def check_same(key: str, stored: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise ConflictError unless both describe the same content."""
    if stored.get(SHA256) != given[SHA256]:
        raise ConflictError(
            f"object {key} already holds other content (sha256 {stored.get(SHA256)}, new {given[SHA256]}); "
            "stored objects never change, so store the new content under its own key"
        )
