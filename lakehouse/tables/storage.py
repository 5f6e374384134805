"""The files below a table's folder: listed with their age, read, written and removed, locally or in a bucket.

Removal is for upkeep only. Not here: deciding which files may go (`garbage`).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from sqlalchemy.exc import SQLAlchemyError

from lakehouse.errors import ConfigError, UnavailableError
from lakehouse.logs import blank_secrets


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file: its plain path (see `plain_path`), size in bytes, and when it was written (aware)."""

    path: str
    bytes: int
    written: datetime


class TableFiles(Protocol):
    """Files by plain path."""

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below `folder`."""

    def exists(self, path: str) -> bool:
        """Whether a file is there."""

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises FileNotFoundError."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file as a whole."""

    def remove(self, paths: Iterable[str]) -> int:
        """Remove files; those that are gone already are fine. Returns how many were asked for."""


def plain_path(location: str) -> str:
    """One spelling for each file: `/folder/file` or `s3://bucket/key`."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location.removeprefix("file:")
    if scheme == "file":
        return "/" + rest.lstrip("/")
    return f"s3://{rest}" if scheme in {"s3", "s3a", "s3n"} else location


def open_files(location: str, properties: Mapping[str, str]) -> TableFiles:
    """The files of a table at `location`; `properties` are PyIceberg's (`s3.endpoint`, …)."""
    path = plain_path(location)
    if path.startswith("/"):
        return LocalFiles()
    if path.startswith("s3://"):
        return BucketFiles(_client(properties))
    raise ConfigError(f"table location {location} is neither a local folder nor s3://; upkeep knows these two")


@contextmanager
def answering(table: str) -> Iterator[None]:
    """Turn what a silent or refusing store or database raises into UnavailableError."""
    try:
        yield
    except (SQLAlchemyError, OSError, urllib3.exceptions.HTTPError, S3Error) as error:
        lines = blank_secrets(str(error).strip()).splitlines()
        raise UnavailableError(
            f"upkeep of {table}: its store or the Iceberg catalog's database does not answer as it should "
            f"({lines[0] if lines else type(error).__name__}); mend it, then run again: a run that ended in the middle "
            "is finished by the next one"
        ) from error


class LocalFiles:
    """Files of this machine."""

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below `folder`."""
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)  # noqa: PTH118  a table has many files, and Path costs ten times more
                try:
                    status = os.stat(path)  # noqa: PTH116
                except FileNotFoundError:
                    continue
                yield StoredFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises FileNotFoundError."""
        return Path(path).read_bytes()

    def exists(self, path: str) -> bool:
        """Whether the file is there."""
        return Path(path).exists()

    def write(self, path: str, data: bytes) -> None:
        """Write a file as a whole: readers see the old or the new one."""
        target = Path(path)
        part = target.with_name(f".{target.name}.{os.getpid()}")
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)

    def remove(self, paths: Iterable[str]) -> int:
        """Remove files; folders stay, since a writer may be about to use them."""
        count = 0
        for path in paths:
            Path(path).unlink(missing_ok=True)
            count += 1
        return count


class BucketFiles:
    """Objects of an S3 server."""

    def __init__(self, client: Minio) -> None:
        self._client = client

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All objects below `folder`."""
        bucket, prefix = _split(folder)
        for item in self._client.list_objects(bucket, prefix=prefix.rstrip("/") + "/", recursive=True):
            if item.object_name and item.last_modified and not item.is_dir:
                yield StoredFile(f"s3://{bucket}/{item.object_name}", item.size or 0, item.last_modified)

    def read(self, path: str) -> bytes:
        """The bytes of an object; raises FileNotFoundError."""
        bucket, key = _split(path)
        try:
            response = self._client.get_object(bucket, key)
        except S3Error as error:
            if error.code == "NoSuchKey":
                raise FileNotFoundError(path) from error
            raise
        try:
            return response.read()
        finally:
            response.close()
            response.release_conn()

    def exists(self, path: str) -> bool:
        """Whether the object is there."""
        bucket, key = _split(path)
        try:
            self._client.stat_object(bucket, key)
        except S3Error as error:
            if error.code in {"NoSuchKey", "NoSuchObject"}:
                return False
            raise
        return True

    def write(self, path: str, data: bytes) -> None:
        """Write an object."""
        bucket, key = _split(path)
        self._client.put_object(bucket, key, io.BytesIO(data), len(data), content_type="application/json")

    def remove(self, paths: Iterable[str]) -> int:
        """Remove objects, a thousand a request."""
        by_bucket: dict[str, list[DeleteObject]] = {}
        for path in paths:
            bucket, key = _split(path)
            by_bucket.setdefault(bucket, []).append(DeleteObject(key))
        for bucket, objects in by_bucket.items():
            for failed in self._client.remove_objects(bucket, objects):
                raise UnavailableError(
                    f"upkeep could not remove s3://{bucket}/{failed.name} ({failed.code}: {failed.message}); "
                    "give the pipeline's user the right to delete in the warehouse bucket and run it again"
                )
        return sum(map(len, by_bucket.values()))


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key


def _client(properties: Mapping[str, str]) -> Minio:
    endpoint = urlsplit(properties.get("s3.endpoint", "https://s3.amazonaws.com"))
    return Minio(
        endpoint=endpoint.netloc,
        access_key=properties.get("s3.access-key-id"),
        secret_key=properties.get("s3.secret-access-key"),
        region=properties.get("s3.region"),
        secure=endpoint.scheme == "https",
        http_client=urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=10, read=60),
            maxsize=16,
            retries=urllib3.Retry(total=3, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504]),
        ),
    )
