"""What `lakehouse doctor` asks the servers: do they answer, in which version, has each user only its own rights?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx
import psycopg
from minio import Minio
from minio.error import MinioException, S3Error
from pydantic import SecretStr
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from lakehouse.cli.doctor import Finding, good, judge_skew, wrong
from lakehouse.settings import SNAPSHOT_BUCKET, WAREHOUSE_BUCKET, Settings

START_ADVICE = "`make status` shows what runs, `make up` starts what does not"
OLDEST_POSTGRES = 14
OLDEST_TRINO = 476


def look_at_servers(settings: Settings) -> Iterator[Finding]:
    """PostgreSQL, object store and Trino of the server profile."""
    yield look_at_saved_addresses(settings)
    yield from look_at_databases(settings)
    yield from look_at_object_store(settings)
    yield from look_at_trino(settings)


def look_at_saved_addresses(settings: Settings) -> Finding:
    """Whether the saved credentials are readable by their owner only."""
    path = settings.home / "server.env"
    if not path.exists():
        return good("saved credentials", "none; all settings come from the environment")
    private = path.stat().st_mode & 0o077 == 0
    advice = "" if private else f"others can read it: chmod 600 {path}"
    return Finding("saved credentials", private, str(path), advice)


def look_at_databases(settings: Settings) -> Iterator[Finding]:
    """Each database with its own user, its version, and the server's clock."""
    urls = {"ledger": settings.database_url, "iceberg": settings.iceberg_url, "dagster": settings.dagster_url}
    for number, (name, url) in enumerate((name, url) for name, url in urls.items() if url is not None):
        topic = f"database {name}"
        try:
            with psycopg.connect(url.get_secret_value().replace("+psycopg", ""), connect_timeout=5) as connection:
                version = connection.info.server_version // 10_000
                row = connection.execute("SELECT clock_timestamp(), current_database()").fetchone()
        except psycopg.Error as error:
            yield wrong(topic, str(error).strip().splitlines()[0], START_ADVICE)
            continue
        at, database = row or (datetime.now(UTC), "?")
        fits = version >= OLDEST_POSTGRES
        advice = "" if fits else f"use PostgreSQL {OLDEST_POSTGRES} or newer"
        yield Finding(topic, fits, f"PostgreSQL {version}, database {database}", advice)
        if number == 0:
            yield judge_skew("PostgreSQL clock", (at - datetime.now(UTC)).total_seconds())


def look_at_object_store(settings: Settings) -> Iterator[Finding]:
    """The endpoint, its clock, and what each user may and may not do."""
    endpoint = urlsplit(settings.s3_endpoint or "")
    if endpoint.scheme not in {"http", "https"} or not endpoint.netloc:
        yield wrong("object store", f"{settings.s3_endpoint!r}", "write LAKEHOUSE_S3_ENDPOINT=http://host:port")
        return
    try:
        reply = httpx.get(endpoint.geturl(), timeout=5, trust_env=False)
    except httpx.HTTPError as error:
        yield wrong("object store", f"{endpoint.geturl()}: {error}", START_ADVICE)
        return
    yield good("object store", f"{endpoint.geturl()} ({reply.headers.get('server', 'unnamed')})")
    if "date" in reply.headers:
        skew = parsedate_to_datetime(reply.headers["date"]) - datetime.now(UTC)
        # The header has no fraction of a second; S3 refuses requests that are off by 15 minutes.
        yield judge_skew("object store clock", skew.total_seconds() + 0.5)
    users = {
        "collector": (settings.collector_access_key, settings.collector_secret_key, SNAPSHOT_BUCKET, "snap/"),
        "pipeline": (settings.pipeline_access_key, settings.pipeline_secret_key, WAREHOUSE_BUCKET, ""),
        "reader": (settings.reader_access_key, settings.reader_secret_key, WAREHOUSE_BUCKET, ""),
    }
    for name, (key, secret, bucket, prefix) in users.items():
        client = _client(settings, key, secret)
        yield _look_at_right(name, client, bucket, prefix)
        if name != "pipeline":
            yield _look_at_deleting(name, client, bucket, prefix)


def look_at_trino(settings: Settings) -> Iterator[Finding]:
    """Whether Trino has started, in which version, and whether the lake's catalog answers its user."""
    where = f"{settings.trino_host}:{settings.trino_port}"
    try:
        info = httpx.get(f"http://{where}/v1/info", timeout=5, trust_env=False).json()
        version, starting = str(info["nodeVersion"]["version"]), info["starting"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        yield wrong("Trino", f"{where}: {error}", START_ADVICE)
        return
    first = version.partition("-")[0]
    number = int(first) if first.isdigit() else 0
    fits = number >= OLDEST_TRINO and not starting
    advice = "it is still starting; wait a minute" if starting else f"use Trino {OLDEST_TRINO} or newer"
    yield Finding("Trino", fits, f"{where}, version {version}", "" if fits else advice)
    if not starting:
        yield _look_at_trino_catalog(settings)


def _look_at_trino_catalog(settings: Settings) -> Finding:
    import trino

    try:
        with trino.dbapi.connect(
            host=settings.trino_host,
            port=settings.trino_port,
            user=settings.trino_user,
            catalog="lakehouse",  # type: ignore[no-untyped-call]
        ) as connection:
            schemas = [row[0] for row in connection.cursor().execute("SHOW SCHEMAS").fetchall()]
    except (trino.exceptions.Error, OSError) as error:
        words = str(getattr(error, "message", error)).splitlines()[0]
        return wrong("Trino catalog", words, "check the catalog files and PostgreSQL; " + START_ADVICE)
    return good("Trino catalog", f"user {settings.trino_user} sees schemas {', '.join(sorted(schemas))}")


def _client(settings: Settings, key: str | None, secret: SecretStr | None) -> Minio:
    endpoint = urlsplit(settings.s3_endpoint or "")
    return Minio(
        endpoint.netloc,
        access_key=key,
        secret_key=secret.get_secret_value() if secret else None,
        secure=endpoint.scheme == "https",
        region=settings.s3_region,
        http_client=PoolManager(timeout=Timeout(5), retries=Retry(0)),
    )


def _look_at_right(name: str, client: Minio, bucket: str, prefix: str) -> Finding:
    code = _refusal(lambda: next(iter(client.list_objects(bucket, prefix)), None))
    words = f"may {'' if code is None else 'not '}list {bucket}/{prefix}" + (f" ({code})" if code else "")
    advice = f"correct LAKEHOUSE_{name.upper()}_ACCESS_KEY and _SECRET_KEY, or run `make up` to make user and bucket"
    return Finding(f"user {name}", code is None, words, "" if code is None else advice)


def _look_at_deleting(name: str, client: Minio, bucket: str, prefix: str) -> Finding:
    # A key that never exists: S3 answers a permitted delete of nothing with success, and nothing is lost.
    code = _refusal(lambda: client.remove_object(bucket, f"{prefix}doctor/never-exists"))
    advice = "" if code == "AccessDenied" else f"take that right from user {name}; see infra/minio/{name}.json"
    words = f"may not delete in {bucket}" if not advice else f"may delete in {bucket} ({code or 'no refusal'})"
    return Finding(f"user {name}", not advice, words, advice)


def _refusal(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except S3Error as error:
        return str(error.code)
    except (MinioException, HTTPError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None
