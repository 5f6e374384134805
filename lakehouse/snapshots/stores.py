"""The object stores: a folder, and MinIO or another S3 through the `minio` package."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import urllib3
from filelock import FileLock
from minio import Minio
from minio.error import MinioException, S3Error

from lakehouse.errors import ConfigError, UnavailableError, UnknownNameError
from lakehouse.snapshots.durable import PART, write_durably
from lakehouse.snapshots.keys import checked_key
from lakehouse.snapshots.objects import ObjectInfo, ObjectStore, StoredObject, check_same, stamped

__all__ = ["DirectoryStore", "MinioStore", "ObjectInfo", "ObjectStore", "StoredObject", "open_minio"]

META_PREFIX = "x-amz-meta-"
ABSENT = {"NoSuchKey", "NoSuchObject", "NoSuchVersion"}


class DirectoryStore:
    """Objects below `root/data`, metadata below `root/meta`; an object counts once its data file has its name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, key: str, data: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Store `data` durably; see ObjectStore."""
        given = {**stamped(data, metadata), "content-type": content_type}
        path = self._data(key)
        try:
            with self._lock(key):
                if path.exists():
                    check_same(key, self._metadata(key), given)
                    return
                write_durably(self._meta(key), json.dumps(given, sort_keys=True).encode())
                write_durably(path, data)
        except OSError as error:
            raise _unavailable(self.root, f"store {key}", error) from error

    def get(self, key: str) -> StoredObject:
        """The object under `key`; see ObjectStore."""
        try:
            return StoredObject(self._data(key).read_bytes(), self._metadata(key))
        except FileNotFoundError:
            raise UnknownNameError(f"object store {self.root} has no object {key}") from None
        except OSError as error:
            raise _unavailable(self.root, f"read {key}", error) from error

    def head(self, key: str) -> ObjectInfo | None:
        """What is known of the object under `key`, or None."""
        path = self._data(key)
        try:
            return self._info(path) if path.is_file() else None
        except OSError as error:
            raise _unavailable(self.root, f"look at {key}", error) from error

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, in key order."""
        base = self.root / "data"
        keys = []
        inner = prefix.rpartition("/")[0]
        for folder, _, names in os.walk(base / checked_key(inner) if inner else base):
            inside = Path(folder).relative_to(base).as_posix()
            keys += [name if inside == "." else f"{inside}/{name}" for name in names if not name.endswith(PART)]
        for key in sorted(keys):
            if key.startswith(prefix):
                yield self._info(base / key)

    def _info(self, path: Path) -> ObjectInfo:
        key = path.relative_to(self.root / "data").as_posix()
        stat = path.stat()
        return ObjectInfo(key, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC), self._metadata(key))

    def _metadata(self, key: str) -> dict[str, str]:
        metadata: dict[str, str] = json.loads(self._meta(key).read_bytes())
        return metadata

    def _data(self, key: str) -> Path:
        return self.root / "data" / checked_key(key)

    def _meta(self, key: str) -> Path:
        return self.root / "meta" / f"{checked_key(key)}.json"

    def _lock(self, key: str) -> FileLock:
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / hashlib.sha256(key.encode()).hexdigest()[:2])


def _unavailable(root: Path, attempt: str, error: OSError) -> UnavailableError:
    return UnavailableError(f"cannot {attempt}: object store {root} gives {error.strerror}; check disk and rights")


def open_minio(endpoint: str, access_key: str, secret_key: str, region: str) -> Minio:
    """A client for `http://host:port` or `https://host`; it gives up after about ten seconds without an answer."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path.strip("/"):
        raise ConfigError("the S3 endpoint cannot be read; write http://host:port without a path")
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=5, read=60), retries=urllib3.Retry(total=2, backoff_factor=0.5), maxsize=16
    )
    return Minio(
        endpoint=parts.netloc,
        access_key=access_key,
        secret_key=secret_key,
        region=region,
        secure=parts.scheme == "https",
        http_client=pool,
    )


class MinioStore:
    """Objects in one bucket; the bucket keeps versions, so even a lost race overwrites nothing for good."""

    def __init__(self, client: Minio, bucket: str) -> None:
        self.client = client
        self.bucket = bucket

    def put(self, key: str, data: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Store `data`; see ObjectStore."""
        given = stamped(data, metadata)
        stored = self.head(checked_key(key))
        if stored is not None:
            check_same(key, stored.metadata, given)
            return
        with self._named(f"store {key}"):
            self.client.put_object(
                bucket_name=self.bucket,
                object_name=key,
                data=BytesIO(data),
                length=len(data),
                content_type=content_type,
                metadata=dict(given),
            )

    def get(self, key: str) -> StoredObject:
        """The object under `key`; see ObjectStore."""
        with self._named(f"read {key}"):
            try:
                response = self.client.get_object(bucket_name=self.bucket, object_name=checked_key(key))
            except S3Error as error:
                if error.code in ABSENT:
                    raise UnknownNameError(f"bucket {self.bucket} has no object {key}") from None
                raise
            try:
                return StoredObject(response.read(), _own_metadata(response.headers))
            finally:
                response.close()
                response.release_conn()

    def head(self, key: str) -> ObjectInfo | None:
        """What is known of the object under `key`, or None."""
        with self._named(f"look at {key}"):
            try:
                found = self.client.stat_object(bucket_name=self.bucket, object_name=checked_key(key))
            except S3Error as error:
                if error.code in ABSENT:
                    return None
                raise
        modified = found.last_modified or datetime.now(UTC)
        return ObjectInfo(key, found.size or 0, modified, _own_metadata(found.metadata or {}))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, in key order; without metadata."""
        with self._named(f"list {prefix}"):
            for found in self.client.list_objects(bucket_name=self.bucket, prefix=prefix, recursive=True):
                if found.object_name is not None and found.last_modified is not None:
                    yield ObjectInfo(found.object_name, found.size or 0, found.last_modified)

    @contextmanager
    def _named(self, attempt: str) -> Iterator[None]:
        """Every way in which a server fails to answer becomes one error that says what to do."""
        try:
            yield
        except S3Error as error:
            raise UnavailableError(
                f"cannot {attempt}: bucket {self.bucket} answers {error.code}; check that the bucket exists and what "
                "these credentials may do (`lakehouse doctor`), then run again"
            ) from None
        except (urllib3.exceptions.HTTPError, MinioException, OSError) as error:
            raise UnavailableError(
                f"cannot {attempt}: the object store does not answer ({type(error).__name__}); start it or correct "
                "LAKEHOUSE_S3_ENDPOINT, then run again: nothing that was collected is lost"
            ) from None


def _own_metadata(headers: Mapping[str, str]) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name.removeprefix(META_PREFIX): value for name, value in lowered.items() if name.startswith(META_PREFIX)}
