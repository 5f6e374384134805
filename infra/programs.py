"""The programs that the servers are: found where they are, else installed once below `~/.cache/lakehouse`.

PostgreSQL, Chromium and fonts come from the distribution, MinIO through the Go module system (checked by its checksum
database), Trino from Maven (checked against the hash below). Nothing is installed twice.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from lakehouse.errors import UnavailableError

Say = Callable[[str], None]

MINIO_MODULE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
TRINO_VERSION = "476"
TRINO_SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
POSTGRES_OLDEST = 14
JAVA_OLDEST = 24
DEBIAN_PACKAGES = {"postgres": "postgresql", "chromium": "chromium", "fonts": "fonts-noto-cjk"}


def cache_folder() -> Path:
    """Where installed programs are kept; `LAKEHOUSE_CACHE` moves it."""
    return Path(os.environ.get("LAKEHOUSE_CACHE") or Path.home() / ".cache" / "lakehouse").absolute()


def postgres_bin() -> Path | None:
    """The folder with `initdb` and `postgres`, version 15 where there are several; None if there is none."""
    folders = {int(p.parent.name): p for p in Path("/usr/lib/postgresql").glob("[0-9]*/bin") if (p / "initdb").exists()}
    usable = sorted((v for v in folders if v >= POSTGRES_OLDEST), key=lambda v: (v != 15, -v))
    if usable:
        return folders[usable[0]]
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found and _major(found, r"\(PostgreSQL\) (\d+)") >= POSTGRES_OLDEST else None


def minio_binary() -> Path | None:
    """The MinIO server of the pinned version, if it is installed."""
    path = cache_folder() / "bin" / "minio"
    return path if path.exists() else None


def trino_folder() -> Path | None:
    """The unpacked Trino of the pinned version, if it is installed."""
    path = cache_folder() / f"trino-{TRINO_VERSION}"
    return path if (path / "bin" / "launcher").exists() else None


def java_home() -> Path | None:
    """A JDK that runs Trino: `JAVA_HOME`, then the newest below /usr/lib/jvm, then the one on PATH."""
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    candidates += sorted(Path("/usr/lib/jvm").glob("*"), reverse=True)
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parent.parent)
    usable = {c.resolve(): java_version(c) for c in candidates if (c / "bin" / "java").exists()}
    good = {home: version for home, version in usable.items() if version >= JAVA_OLDEST}
    if candidates and candidates[0].resolve() in good and os.environ.get("JAVA_HOME"):
        return candidates[0].resolve()
    return max(good, key=lambda home: good[home]) if good else None


def java_version(home: Path) -> int:
    """The feature version of a JDK; 0 if it says none."""
    release = home / "release"
    if release.exists():
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text())
        return int(found[1]) if found else 0
    return _major(str(home / "bin" / "java"), r'version "(\d+)', "-version")


def chromium_binary() -> Path | None:
    """A Chromium or Chrome for pages that need a browser, if there is one."""
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"):
        found = shutil.which(name)
        if found:
            return Path(found)
    return None


def has_cjk_fonts() -> bool:
    """Whether Chinese text in screenshots is more than boxes."""
    folders = (Path("/usr/share/fonts"), Path.home() / ".fonts", Path.home() / ".local/share/fonts")
    return any(next(folder.rglob("*CJK*"), None) is not None for folder in folders if folder.exists())


def install_all(say: Say, *, servers_only: bool = False) -> None:
    """Install whatever is missing; raises UnavailableError that says what to install by hand.

    `servers_only` leaves out Chromium and fonts, which tests and pages with JavaScript need.
    """
    cache_folder().mkdir(parents=True, exist_ok=True)
    with FileLock(cache_folder() / "install.lock"):
        install_debian_packages(say, ["postgres"] if servers_only else list(DEBIAN_PACKAGES))
        install_minio(say)
        install_trino(say)


def install_debian_packages(say: Say, names: Sequence[str]) -> None:
    """PostgreSQL, Chromium and CJK fonts through apt-get, when they are missing and we may."""
    present = {"postgres": postgres_bin, "chromium": chromium_binary, "fonts": has_cjk_fonts}
    missing = [DEBIAN_PACKAGES[name] for name in names if not present[name]()]
    if not missing:
        return
    words = " ".join(missing)
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise UnavailableError(
            f"these packages are missing and only root can install them: {words}; "
            f"run `sudo apt-get install {words}` (or your system's equivalent) and try again"
        )
    say(f"installing {words} with apt-get")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    run_tool(["apt-get", "update", "-q"], env=env, what="refresh the package lists")
    run_tool(["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing], env=env, what=f"install {words}")


def install_minio(say: Say) -> None:
    """MinIO built from its pinned module with the Go toolchain; about two minutes the first time."""
    if minio_binary():
        return
    need_tool("go", "install Go 1.24 or newer (Debian: golang-go) to build MinIO")
    cache = cache_folder()
    say(f"building MinIO ({MINIO_MODULE}), about two minutes")
    env = {"GOPATH": str(cache / "go"), "GOCACHE": str(cache / "go-build"), "GOBIN": str(cache / "bin.new")}
    run_tool(["go", "install", "-trimpath", MINIO_MODULE], env=env, what="build MinIO")
    (cache / "bin").mkdir(exist_ok=True)
    (cache / "bin.new" / "minio").replace(cache / "bin" / "minio")
    (cache / "bin.new").rmdir()
    # A gigabyte of object files is of no use once the binary is there.
    shutil.rmtree(cache / "go-build", ignore_errors=True)


def install_trino(say: Say) -> None:
    """Trino's server from Maven, checked against the pinned hash and unpacked; 821 MB the first time."""
    if java_home() is None:
        raise UnavailableError(
            f"Trino needs a JDK of version {JAVA_OLDEST} or newer and none was found; install one "
            "(Debian: openjdk-25-jdk-headless, or Temurin 25) below /usr/lib/jvm or set JAVA_HOME"
        )
    if trino_folder():
        return
    cache = cache_folder()
    archive = cache / f"m2/io/trino/trino-server/{TRINO_VERSION}/trino-server-{TRINO_VERSION}.tar.gz"
    if not archive.exists():
        need_tool("mvn", "install Maven (Debian: maven) to download Trino")
        say(f"downloading Trino {TRINO_VERSION} (821 MB)")
        goal = [f"{MAVEN_PLUGIN}:get", f"-Dartifact=io.trino:trino-server:{TRINO_VERSION}:tar.gz", "-Dtransitive=false"]
        command = ["mvn", "-q", "-B", "-C", f"-Dmaven.repo.local={cache / 'm2'}", *goal]
        run_tool(command, env={}, what="download Trino", cwd=cache)
    say(f"unpacking Trino {TRINO_VERSION}")
    check_hash(archive, TRINO_SHA256)
    unpack(archive, cache / f"trino-{TRINO_VERSION}", inner=f"trino-server-{TRINO_VERSION}")


def check_hash(path: Path, expected: str) -> None:
    """Raises UnavailableError, and removes the file, if its sha256 is not `expected`."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        path.unlink()
        raise UnavailableError(f"{path.name} has sha256 {found}, expected {expected}; it was removed, run again")


def unpack(archive: Path, target: Path, *, inner: str) -> None:
    """Unpack `inner` of a tar archive as `target`; `target` exists only once it is whole."""
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(fresh, filter="data")
    shutil.rmtree(target, ignore_errors=True)
    (fresh / inner).replace(target)
    shutil.rmtree(fresh)


def need_tool(name: str, advice: str) -> None:
    """Raises UnavailableError with `advice` if `name` is not on PATH."""
    if shutil.which(name) is None:
        raise UnavailableError(f"{name} is not on PATH; {advice}")


def run_tool(command: Sequence[str], *, env: Mapping[str, str], what: str, cwd: Path | None = None) -> None:
    """Run a tool; raises UnavailableError with the end of its output if it fails."""
    done = subprocess.run(
        list(command), env={**os.environ, **env}, cwd=cwd, capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise UnavailableError(f"could not {what}: `{' '.join(command)}` ended with {done.returncode}:\n{tail}")


def _major(program: str, pattern: str, flag: str = "--version") -> int:
    done = subprocess.run([program, flag], capture_output=True, text=True, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    return int(found[1]) if found else 0
