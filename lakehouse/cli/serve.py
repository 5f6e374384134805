"""`lakehouse serve`: the Dagster UI on this lake, until interrupted."""

from __future__ import annotations

import os
import sys

import click


@click.command("serve", help="Open the Dagster UI on this lake, with the daemon for sensors and schedules.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
def command(host: str, port: int) -> None:
    """Become the UI's process, so that signals reach it; this library itself knows nothing of Dagster."""
    from lakehouse.settings import load_settings

    load_settings()
    sys.stdout.flush()
    arguments = [sys.executable, "-m", "assets.serve", "--host", host, "--port", str(port)]
    os.execv(sys.executable, arguments)  # noqa: S606 - an argument list of our own, no shell
