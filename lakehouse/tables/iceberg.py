"""The Iceberg SQL catalog, opened so that concurrent processes do not fail and no credential reaches a message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog


@dataclass(frozen=True, slots=True)
class S3Access:
    """How to reach an S3 server. `endpoint` is `http(s)://host:port`; None means the provider's own."""

    access_key: str
    secret_key: str
    endpoint: str | None = None
    region: str = "us-east-1"


def open_iceberg(url: str, warehouse: str | Path, s3: S3Access | None = None) -> SqlCatalog:
    """The catalog named `lakehouse` in the database at `url`, with its tables created.

    `url` is `sqlite:///…` or `postgresql+psycopg://…`; `warehouse` is a folder or `s3://bucket/prefix`.
    Raises UnavailableError if the database does not answer, ConfigError for another kind of `url`.
    """
    raise NotImplementedError
