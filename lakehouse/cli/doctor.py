"""`lakehouse doctor`: is this machine fit to run the lake, and what to do where it is not."""

from __future__ import annotations

import re
import shutil
import socket
import sys
import tempfile
import zoneinfo
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import click

from lakehouse.cli.output import json_option, print_json
from lakehouse.errors import SettingError
from lakehouse.settings import Profile, Settings, load_settings

DISTRIBUTION = "crawl-lakehouse"
LEAST_FREE_BYTES = 2_000_000_000
MOST_SKEW_S = 5.0
UI_PORT = 3000
EARLIEST_SANE_YEAR = 2025


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `ok` or not, what was found, and what to do when it is wrong.

    `advice` beside `ok` is a hint about something that only some work needs.
    """

    topic: str
    ok: bool
    found: str
    advice: str = ""

    def __str__(self) -> str:
        mark = "ok   " if self.ok else "WRONG"
        return f"{mark}  {self.topic:<22} {self.found}" + (f"\n       → {self.advice}" if self.advice else "")


def good(topic: str, found: str, hint: str = "") -> Finding:
    """Something as it should be."""
    return Finding(topic, ok=True, found=found, advice=hint)


def wrong(topic: str, found: str, advice: str) -> Finding:
    """Something to put right."""
    return Finding(topic, ok=False, found=found, advice=advice)


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check versions, ports, disk, clock, credentials and servers; exit code 1 if something is wrong."""
    findings = list(look_at_everything())
    bad = sum(not finding.ok for finding in findings)
    if as_json:
        print_json({"ok": bad == 0, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            click.echo(str(finding))
        click.echo(f"{bad} of {len(findings)} checks found something wrong" if bad else "nothing is wrong")
    sys.exit(1 if bad else 0)


def look_at_everything() -> Iterator[Finding]:
    """All findings for the settings of this environment; wrong settings are a finding too."""
    try:
        settings = load_settings()
        yield good("settings", f"profile {settings.profile}, home {settings.home}")
    except SettingError as error:
        yield wrong("settings", str(error), "correct the named variable; its text says what would be right")
        settings = Settings.model_construct()
    yield from look_at_versions()
    yield look_at_disk(settings.home)
    yield look_at_catalog(settings.catalog_dir)
    yield from look_at_clock(settings)
    yield look_at_browser(settings)
    yield look_at_port(UI_PORT, "Dagster UI port")
    if settings.profile is Profile.SERVER:
        from lakehouse.cli.doctor_servers import look_at_servers

        yield from look_at_servers(settings)


def look_at_versions() -> Iterator[Finding]:
    """Python, and every package whose exact version matters."""
    version = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info[:2] < (3, 13)
    yield Finding("Python", fits, version, "" if fits else "use Python 3.11 or 3.12: remove .venv, then `make setup`")
    differing = []
    pins = exact_pins()
    for name, wanted in pins.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "missing"
        if found != wanted:
            differing.append(f"{name} is {found}, not {wanted}")
    advice = "run `make setup`" if differing or not pins else ""
    words = "; ".join(differing) or f"{len(pins)} pinned packages as they should be"
    yield Finding("packages", not advice, words if pins else "this project is not installed", advice)


def exact_pins() -> dict[str, str]:
    """The packages that this project pins to one version; empty if it is not installed."""
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    found = [re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^;\s]+)$", text) for text in needed]
    return {match[1]: match[2] for match in found if match}


def look_at_disk(home: Path) -> Finding:
    """Whether the home can be written to and has room."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            free = shutil.disk_usage(home).free
    except OSError as error:
        return wrong("home folder", f"{home}: {error.strerror}", "set LAKEHOUSE_HOME to a folder of yours")
    enough = free >= LEAST_FREE_BYTES
    advice = "" if enough else "free at least 2 GB, or set LAKEHOUSE_HOME to a folder on a larger disk"
    return Finding("home folder", enough, f"{home.resolve()}, {free / 1e9:.1f} GB free", advice)


def look_at_catalog(folder: Path) -> Finding:
    """Whether the declared data is where the settings say."""
    there = (folder / "sources").is_dir()
    advice = "" if there else "run in the project's folder, or set LAKEHOUSE_CATALOG_DIR"
    return Finding("catalog", there, f"{folder.resolve()}{'' if there else ' has no folder sources'}", advice)


def look_at_clock(settings: Settings) -> Iterator[Finding]:
    """Business zone and day, a sane year, and the file system's clock against ours."""
    try:
        clock = settings.clock
        now = clock.now()
    except zoneinfo.ZoneInfoNotFoundError as error:
        yield wrong("business day", str(error), "install tzdata")
        return
    zone = datetime.now().astimezone().tzname()
    sane = now.year >= EARLIEST_SANE_YEAR
    words = f"{now.date()} {now:%H:%M} in {settings.business_tz}; the machine's own zone is {zone}"
    yield Finding("business day", sane, words, "" if sane else "set the machine's clock (timedatectl set-ntp true)")
    try:
        with tempfile.NamedTemporaryFile(dir=settings.home) as probe:
            before = datetime.now(UTC)
            Path(probe.name).touch()
            stamped = datetime.fromtimestamp(Path(probe.name).stat().st_mtime, UTC)
    except OSError:
        return
    yield judge_skew("file system clock", (stamped - before).total_seconds())


def judge_skew(topic: str, seconds: float) -> Finding:
    """A clock that differs from this machine's by `seconds`."""
    fits = abs(seconds) <= MOST_SKEW_S
    advice = "" if fits else "let both machines follow a time server: dt and collect_time depend on it"
    return Finding(topic, fits, f"differs by {seconds:+.1f} s", advice)


def look_at_browser(settings: Settings) -> Finding:
    """A Chromium for the pages that need JavaScript."""
    names = [settings.browser_path] if settings.browser_path else ["chromium", "chromium-browser", "google-chrome"]
    found = next((path for path in map(shutil.which, names) if path), None)
    if found:
        return good("browser", found)
    if settings.browser_path:
        return wrong("browser", f"{names[0]} cannot be run", "correct LAKEHOUSE_BROWSER_PATH")
    return good("browser", "no Chromium", "only pages that need JavaScript need one: install chromium")


def look_at_port(port: int, topic: str) -> Finding:
    """Whether something listens there already; that may well be our own server."""
    with socket.socket() as probe:
        probe.settimeout(1)
        taken = probe.connect_ex(("127.0.0.1", port)) == 0
    advice = "unless it is this lake's UI, open it on another port: `lakehouse serve --port N`" if taken else ""
    return good(topic, f"{port} is {'in use' if taken else 'free'}", advice)
