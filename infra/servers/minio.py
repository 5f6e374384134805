"""MinIO: two buckets and one user for each part of the lake, with no more rights than the part needs."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from minio import Minio
from minio.commonconfig import ENABLED, Filter
from minio.credentials.providers import StaticProvider
from minio.lifecycleconfig import LifecycleConfig, NoncurrentVersionExpiration, Rule
from minio.minioadmin import MinioAdmin
from minio.versioningconfig import VersioningConfig

from infra.processes import Launch, ServerProcess
from infra.programs import minio_binary
from lakehouse.errors import UnavailableError
from lakehouse.settings import SNAPSHOT_BUCKET, WAREHOUSE_BUCKET

ROOT = "lakehouse-root"
USERS = ("collector", "pipeline", "reader", "upkeep")
REGION = "us-east-1"
STOP_SIGNAL = signal.SIGTERM
POLICIES = Path(__file__).parent.parent / "minio"


def start(process: ServerProcess, ports: Mapping[str, int], secrets: Mapping[str, str]) -> None:
    """Start the server on 127.0.0.1 with its data below the process's folder."""
    binary = minio_binary()
    if binary is None:
        raise UnavailableError("MinIO is not installed; run `python -m infra install`")
    data, certs = process.folder / "data", process.folder / "certs"
    data.mkdir(parents=True, exist_ok=True)
    certs.mkdir(exist_ok=True)
    env = {**variables(secrets), "HOME": str(process.folder)}
    command = [str(binary), "server", "--address", f"127.0.0.1:{ports['minio']}", "--certs-dir", str(certs), str(data)]
    process.start(Launch(command, env, process.folder))


def variables(secrets: Mapping[str, str]) -> dict[str, str]:
    """The server's own environment variables."""
    return {
        "MINIO_ROOT_USER": ROOT,
        "MINIO_ROOT_PASSWORD": secrets["minio_root"],
        "MINIO_REGION": REGION,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }


def is_ready(ports: Mapping[str, int], _: Mapping[str, str]) -> Callable[[], bool]:
    """A question for `wait_until`: does the server say that it can serve?"""

    def answer() -> bool:
        try:
            reply = httpx.get(f"http://127.0.0.1:{ports['minio']}/minio/health/ready", timeout=3, trust_env=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == httpx.codes.OK

    return answer


def client(port: int, user: str, secret: str) -> Minio:
    """An object store client for one of the users."""
    return Minio(f"127.0.0.1:{port}", access_key=user, secret_key=secret, secure=False, region=REGION)


def prepare(ports: Mapping[str, int], secrets: Mapping[str, str]) -> None:
    """Make buckets, versioning, life cycle, users and policies; doing it twice changes nothing."""
    port = ports["minio"]
    root = client(port, ROOT, secrets["minio_root"])
    for bucket in (WAREHOUSE_BUCKET, SNAPSHOT_BUCKET):
        if not root.bucket_exists(bucket):
            root.make_bucket(bucket)
    root.set_bucket_versioning(SNAPSHOT_BUCKET, VersioningConfig(ENABLED))
    root.set_bucket_lifecycle(SNAPSHOT_BUCKET, snapshot_lifecycle())
    admin = MinioAdmin(
        endpoint=f"127.0.0.1:{port}",
        credentials=StaticProvider(ROOT, secrets["minio_root"]),
        region=REGION,
        secure=False,
    )
    for user in USERS:
        admin.user_add(user, secrets[f"s3_{user}"])
        admin.policy_add(user, policy=policy(user))
        admin.policy_set(user, user=user)


def policy(user: str) -> dict[str, object]:
    """The policy document of one user."""
    document: dict[str, object] = json.loads((POLICIES / f"{user}.json").read_text())
    return document


def snapshot_lifecycle() -> LifecycleConfig:
    """Pages are never overwritten; what a mistake replaced stays readable for as long as the file says."""
    values = json.loads((POLICIES / "snapshots-lifecycle.json").read_text())
    return LifecycleConfig(
        [
            Rule(
                ENABLED,
                rule_id=rule["id"],
                rule_filter=Filter(prefix=rule["prefix"]),
                noncurrent_version_expiration=NoncurrentVersionExpiration(noncurrent_days=rule["noncurrent_days"]),
            )
            for rule in values["rules"]
        ]
    )
