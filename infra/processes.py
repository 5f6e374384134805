"""Server processes: started apart from the terminal, known by pid *and* start time, and only ever ended by both.

A pid alone may by now belong to somebody else's process; with the start time in the pid file that can't happen.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from infra.state import write_private
from lakehouse.errors import UnavailableError

LOG_TAIL = 25
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")

# Keeps a child of this interpreter from being collected, which would warn about a process that is still running.
_children: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _forget_children() -> None:
    """Servers outlive who started them: that is no leak to warn about."""
    for child in _children.values():
        if child.poll() is None:
            child.returncode = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How one server is started; `user` is a uid and gid to become, `descriptors` stay open in the server."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    user: tuple[int, int] | None = None
    descriptors: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """One server's process, pid file and log below `folder`."""

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        """Where standard output and standard error go."""
        return self.folder / "server.log"

    @property
    def pid_file(self) -> Path:
        """Holds pid and start time from start to stop; a file without its process means that the server died."""
        return self.folder / "pid.json"

    def pid(self) -> int | None:
        """The pid if the process we started still runs."""
        try:
            saved = json.loads(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        pid, identity = int(saved["pid"]), saved["identity"]
        return pid if identity is not None and process_identity(pid) == identity else None

    def died(self) -> bool:
        """Whether it was started, was not stopped, and is gone."""
        return self.pid_file.exists() and self.pid() is None

    def start(self, launch: Launch) -> int:
        """Start the server and write its pid file; the pid."""
        self.folder.mkdir(parents=True, exist_ok=True)
        env = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        uid, gid = launch.user or (None, None)
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.old"))
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                list(launch.command),
                env={**env, **launch.env},
                cwd=launch.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=uid,
                group=gid,
                extra_groups=[] if launch.user else None,
                pass_fds=tuple(launch.descriptors),
                start_new_session=True,
            )
        _children[child.pid] = child
        write_private(self.pid_file, json.dumps({"pid": child.pid, "identity": process_identity(child.pid)}))
        return child.pid

    def stop(self, *, by: signal.Signals = signal.SIGTERM, patience: float = 30) -> bool:
        """End the process, by force after `patience` seconds; whether there was one."""
        pid = self.pid()
        if pid is not None:
            own = psutil.Process(pid).children(recursive=True)
            os.kill(pid, by)
            if not self._gone(pid, patience):
                os.kill(pid, signal.SIGKILL)
                self._gone(pid, 10)
            psutil.wait_procs(own, timeout=10)
        self.pid_file.unlink(missing_ok=True)
        return pid is not None

    def kill(self) -> None:
        """End the process with SIGKILL and leave its pid file, as a crash would."""
        pid = self.pid()
        if pid is not None:
            own = psutil.Process(pid).children(recursive=True)
            os.kill(pid, signal.SIGKILL)
            self._gone(pid, 10)
            psutil.wait_procs(own, timeout=10)

    def log_tail(self, lines: int = LOG_TAIL) -> str:
        """The last lines of the log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Wait until `ready()`; raises UnavailableError with the log's end if the process ends or time runs out."""
        end = time.monotonic() + seconds
        while not ready():
            if self.pid() is None:
                self.pid_file.unlink(missing_ok=True)
                raise UnavailableError(f"{self.name} ended while it was starting; {self._log_words()}")
            if time.monotonic() > end:
                raise UnavailableError(f"{self.name} was not ready within {seconds:.0f} s; {self._log_words()}")
            time.sleep(0.1)

    def _log_words(self) -> str:
        return f"the end of {self.log}:\n{self.log_tail()}"

    def _gone(self, pid: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while process_identity(pid) is not None:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        child = _children.pop(pid, None)
        if child is not None:
            child.wait()
        return True


def process_identity(pid: int) -> str | None:
    """What tells this process from a later one with the same pid; None if it does not run (a zombie does not)."""
    child = _children.get(pid)
    if child is not None:
        child.poll()
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists():
            # Start time in ticks since boot: unlike a wall clock time it does not move when the clock is set.
            ticks = stat.read_text().rpartition(")")[2].split()[19]
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            return f"{boot}:{ticks}"
        return f"{process.create_time():.2f}"
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return None
