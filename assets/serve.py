"""`python -m assets.serve`: prepares Dagster's home below the lake's and opens the UI with its daemon."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml
from sqlalchemy import make_url

from lakehouse.settings import Profile, Settings, load_settings

POSTGRES_URL = "LAKEHOUSE_DAGSTER_URL"


def instance_config(settings: Settings) -> dict[str, object]:
    """`dagster.yaml` of one profile: bounded ticks, few parallel runs, no telemetry, no pop-up."""
    ticks = {"purge_after_days": {"skipped": 2, "success": 30, "failure": 30, "started": 30}}
    config: dict[str, object] = {
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "retention": {"schedule": ticks, "sensor": ticks},
        "concurrency": {"runs": {"max_concurrent_runs": 2}},
        "run_monitoring": {"enabled": True, "start_timeout_seconds": 300},
    }
    if settings.profile is Profile.SERVER:
        config["storage"] = {"postgres": {"postgres_url": {"env": POSTGRES_URL}}}
    return config


def prepare_dagster_home(settings: Settings) -> Path:
    """Write `<home>/dagster/dagster.yaml` and point this process and its children to it."""
    home = (settings.home / "dagster").resolve()
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(yaml.safe_dump(instance_config(settings)), encoding="utf-8")
    os.environ["DAGSTER_HOME"] = str(home)
    if settings.dagster_url is not None:
        # Dagster sends NOTIFY with a parameter, which psycopg 3 refuses: it binds on the server.
        url = make_url(settings.dagster_url.get_secret_value()).set(drivername="postgresql+psycopg2")
        os.environ[POSTGRES_URL] = url.render_as_string(hide_password=False)
    return home


def run_until_signal(commands: Sequence[Sequence[str]]) -> int:
    """Run the commands side by side until one ends or this process is told to stop; then end the others."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Shells start background jobs with SIGINT ignored; Dagster then ignores SIGTERM as well, and nothing could stop it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    children = [subprocess.Popen(command) for command in commands]
    try:
        while all(child.poll() is None for child in children):
            time.sleep(0.5)
        return next(child.returncode for child in children if child.returncode is not None)
    except KeyboardInterrupt:
        return 0
    finally:
        end_all(children)


def end_all(children: Sequence[subprocess.Popen[bytes]], patience_s: float = 60) -> None:
    """Ask the processes to end, and make those that have not done so within `patience_s` seconds."""
    for child in children:
        child.terminate()
    until = time.monotonic() + patience_s
    for child in children:
        try:
            child.wait(timeout=max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(
        description="open the Dagster UI on this lake, with the daemon for sensors and schedules"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3000)
    args = parser.parse_args()
    prepare_dagster_home(load_settings())
    bin_folder = Path(sys.executable).parent
    return run_until_signal(
        [
            [str(bin_folder / "dagster-webserver"), "-m", "definitions", "-h", args.host, "-p", str(args.port)],
            [str(bin_folder / "dagster-daemon"), "run", "-m", "definitions"],
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
