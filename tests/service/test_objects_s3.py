"""Object stores keep one promise, whichever they are; in a bucket the collector can add and read but not delete."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from minio.error import S3Error

from infra.launcher import Servers
from lakehouse.errors import ConfigError, ConflictError, InvariantError, UnavailableError, UnknownNameError
from lakehouse.settings import SNAPSHOT_BUCKET
from lakehouse.snapshots.bodies import put_body, read_body
from lakehouse.snapshots.objects import ObjectStore
from lakehouse.snapshots.stores import DirectoryStore, MinioStore, open_minio

WHEN = datetime(2026, 3, 1, 4, tzinfo=UTC)


def s3_store(servers: Servers, bucket: str = SNAPSHOT_BUCKET, secret: str | None = None) -> MinioStore:
    settings = servers.settings()
    assert settings.s3_endpoint is not None
    assert settings.collector_access_key is not None
    assert settings.collector_secret_key is not None
    key = secret or settings.collector_secret_key.get_secret_value()
    return MinioStore(open_minio(settings.s3_endpoint, settings.collector_access_key, key, settings.s3_region), bucket)


@pytest.fixture(params=["directory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "directory":
        return DirectoryStore(tmp_path)
    return s3_store(request.getfixturevalue("servers"))


@pytest.fixture
def prefix() -> str:
    """Keys of this test alone."""
    return f"snap/test{uuid4().hex[:10]}"


def test_what_is_stored_is_read_back_and_never_replaced(store: ObjectStore, prefix: str) -> None:
    key = f"{prefix}/a.txt"
    store.put(key, b"one", content_type="text/plain", metadata={"Crawled-At": "2026", "name": "云"})
    store.put(key, b"one", content_type="text/plain", metadata={})
    with pytest.raises(ConflictError):
        store.put(key, b"two", content_type="text/plain", metadata={})
    stored = store.get(key)
    assert stored.data == b"one"
    assert (stored.metadata["crawled-at"], stored.metadata["name"]) == ("2026", "?")
    info = store.head(key)
    assert info is not None
    assert (info.size, info.metadata["sha256"]) == (3, stored.metadata["sha256"])
    assert info.modified.tzinfo is not None


def test_what_is_not_there_is_unknown(store: ObjectStore, prefix: str) -> None:
    assert store.head(f"{prefix}/none") is None
    with pytest.raises(UnknownNameError):
        store.get(f"{prefix}/none")
    with pytest.raises(InvariantError):
        store.get("../none")


def test_listing_goes_by_prefix_in_order(store: ObjectStore, prefix: str) -> None:
    for name in ("b/1", "a/2", "a/10", "c"):
        store.put(f"{prefix}/{name}", name.encode(), content_type="text/plain", metadata={})
    store.put(f"{prefix}x/d", b"d", content_type="text/plain", metadata={})
    assert [info.key for info in store.list(f"{prefix}/")] == [
        f"{prefix}/{name}" for name in ("a/10", "a/2", "b/1", "c")
    ]
    assert [info.size for info in store.list(f"{prefix}/a/")] == [4, 3]


def test_bodies_of_every_size_come_back(store: ObjectStore, prefix: str) -> None:
    for number, body in enumerate((b"", b"<html>", "正文".encode("gb18030") * 100_000, bytes(range(256)) * 20_000)):
        key = f"{prefix}/{number}.zst"
        sha256 = put_body(store, key, body, crawled_at=WHEN, media_type=None, charset=None)
        assert read_body(store, key, sha256) == body


def test_the_collector_cannot_delete(servers: Servers, prefix: str) -> None:
    store = s3_store(servers)
    store.put(f"{prefix}/kept", b"x", content_type="text/plain", metadata={})
    with pytest.raises(S3Error, match="AccessDenied"):
        store.client.remove_object(SNAPSHOT_BUCKET, f"{prefix}/kept")
    assert store.get(f"{prefix}/kept").data == b"x"


def test_a_bucket_or_key_that_does_not_work_is_unavailable_without_secrets(servers: Servers) -> None:
    for store in (s3_store(servers, bucket="no-such-bucket"), s3_store(servers, secret="not-the-secret")):
        with pytest.raises(UnavailableError) as caught:
            store.put("a", b"x", content_type="text/plain", metadata={})
        assert "not-the-secret" not in str(caught.value)
        with pytest.raises(UnavailableError):
            store.get("a")
        with pytest.raises(UnavailableError):
            list(store.list("a"))


def test_a_server_that_is_down_is_unavailable() -> None:
    store = MinioStore(open_minio("http://127.0.0.1:9", "me", "hunter2", "us-east-1"), "bucket")
    with pytest.raises(UnavailableError, match="does not answer") as caught:
        store.head("a")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["localhost:9000", "ftp://a", "http://", "http://a/path"])
def test_an_endpoint_that_cannot_be_read_is_a_configuration_error(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="endpoint"):
        open_minio(endpoint, "me", "secret", "us-east-1")
