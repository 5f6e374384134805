"""Trino: reads the lake for everybody; a second catalog with its own user does upkeep and can't delete files.

All settings are the files below `infra/trino/etc`, which containers mount unchanged; addresses and secrets reach them
as environment variables, so no rendered copy with secrets exists.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from infra.processes import Launch, ServerProcess
from infra.programs import java_home, trino_folder
from infra.servers import minio
from lakehouse.errors import UnavailableError

ETC = Path(__file__).parent.parent / "trino" / "etc"
STOP_SIGNAL = signal.SIGTERM


def variables(postgres_address: str, s3_endpoint: str, secrets: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that the files below `infra/trino/etc` name."""
    return {
        "LAKEHOUSE_POSTGRES_ADDRESS": postgres_address,
        "LAKEHOUSE_S3_ENDPOINT": s3_endpoint,
        "LAKEHOUSE_S3_REGION": minio.REGION,
        "LAKEHOUSE_TRINO_READER_PASSWORD": secrets["postgres_trino_reader"],
        "LAKEHOUSE_TRINO_UPKEEP_PASSWORD": secrets["postgres_trino_upkeep"],
        "LAKEHOUSE_S3_READER_SECRET": secrets["s3_reader"],
        "LAKEHOUSE_S3_UPKEEP_SECRET": secrets["s3_upkeep"],
    }


def start(
    process: ServerProcess,
    ports: Mapping[str, int],
    secrets: Mapping[str, str],
    *,
    s3: str = "minio",
    short_lived: bool = False,
) -> None:
    """Start the server on 127.0.0.1; it needs PostgreSQL and the S3 server `s3` only when it is asked something."""
    program, java = trino_folder(), java_home()
    if program is None or java is None:
        raise UnavailableError("Trino or a JDK for it is not installed; run `python -m infra install`")
    data = process.folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    port = ports["trino"]
    properties = {
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
    }
    options = [word for key, value in properties.items() for word in ("-D", f"{key}={value}")]
    if short_lived:
        # The optimising compiler takes a third of the processor time of a start, and a short life never earns it back.
        options += ["-J", "-XX:TieredStopAtLevel=1"]
    command = [
        str(program / "bin" / "launcher"),
        "--etc-dir",
        str(ETC),
        "--data-dir",
        str(data),
        "--jvm-dir",
        str(java),
        *options,
        "run",
    ]
    addresses = f"127.0.0.1:{ports['postgres']}", f"http://127.0.0.1:{ports[s3]}"
    env = {**variables(*addresses, secrets), "JAVA_HOME": str(java), "HOME": str(process.folder)}
    process.start(Launch(command, env, data))


def is_ready(port: int) -> Callable[[], bool]:
    """A question for `wait_until`: has the server finished starting?"""

    def answer() -> bool:
        try:
            reply = httpx.get(f"http://127.0.0.1:{port}/v1/info", timeout=3, trust_env=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == httpx.codes.OK and reply.json()["starting"] is False

    return answer
