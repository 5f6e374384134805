"""The spool: what was fetched waits here, whole and on disk, until it is uploaded and registered.

One file a fetch, below `<spool>/<source>/<dt>/`: a JSON header line (the fetch, entries of a list page, how the task
goes on), then the packed bodies. A file counts once it has its name; what a dead process left half-written never does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from lakehouse.errors import SnapshotCorrupt, UnavailableError
from lakehouse.model.fetch import Entry, Fetch
from lakehouse.model.partition import SourceDay
from lakehouse.snapshots.codec import compress
from lakehouse.snapshots.durable import PART, make_folder, sync_folder, write_durably, writer_pid
from lakehouse.snapshots.rows import row_as_json, row_from_json

RECORD = ".fetch"
TORN = ".torn"
PLAN = ".plan"
DONE = ".done"


@dataclass(frozen=True, slots=True)
class SpoolRecord:
    """One spooled fetch without its bodies. `after` says how its task goes on; `size` is in bytes on disk."""

    path: Path
    fetch: Fetch
    entries: tuple[Entry, ...]
    after: Mapping[str, Any]
    size: int
    lengths: tuple[int | None, int | None]
    sha256: str
    start: int

    def read_packed(self) -> tuple[bytes | None, bytes | None]:
        """The packed served body and rendered DOM; raises SnapshotCorrupt if they are not what was written."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            rest = file.read()
        if hashlib.sha256(rest).hexdigest() != self.sha256:
            raise SnapshotCorrupt(f"spool file {self.path.name} does not hold what was written; it is set aside")
        served, rendered = self.lengths
        cut = served or 0
        return (None if served is None else rest[:cut]), (None if rendered is None else rest[cut:])


class Spool:
    """Files below one local folder; safe to share between processes of one machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(
        self,
        fetch: Fetch,
        body: bytes | None,
        rendered: bytes | None = None,
        *,
        entries: Sequence[Entry] = (),
        after: Mapping[str, Any] | None = None,
    ) -> SpoolRecord:
        """Keep one fetch with the bodies to store (plain bytes, or None for none); on disk when this returns.

        Raises UnavailableError when the folder cannot take it.
        """
        packed = [None if part is None else compress(part) for part in (body, rendered)]
        pieces = [part for part in packed if part is not None]
        header = {
            "fetch": row_as_json(fetch),
            "entries": [row_as_json(entry) for entry in entries],
            "after": dict(after or {}),
            "lengths": [None if part is None else len(part) for part in packed],
            "sha256": hashlib.sha256(b"".join(pieces)).hexdigest(),
        }
        path = self._folder(fetch.source, fetch.dt) / f"{fetch.fetch_id}{RECORD}"
        try:
            write_durably(path, json.dumps(header).encode() + b"\n", *pieces)
            return _read_record(path)
        except OSError as error:
            raise UnavailableError(
                f"cannot spool a page of {fetch.source} in {path.parent}: {error.strerror}; make room or correct the "
                "folder's rights, then run again"
            ) from error

    def pending(self, source: str, dt: date) -> list[SpoolRecord]:
        """All whole records of a day, oldest first; broken ones are left out."""
        found = []
        for path in sorted(self._folder(source, dt).glob(f"*{RECORD}")):
            try:
                found.append(_read_record(path))
            except (FileNotFoundError, ValueError, KeyError, TypeError):
                continue
        return found

    def days(self) -> list[SourceDay]:
        """Days that have something waiting, in order."""
        waiting = {path.parent for suffix in (RECORD, PLAN, DONE) for path in self.root.glob(f"*/*/*{suffix}")}
        return sorted(SourceDay(folder.parent.name, date.fromisoformat(folder.name)) for folder in waiting)

    def set_aside_torn(self, source: str, dt: date) -> list[str]:
        """Rename files that a dead process left half-written, and records that cannot be read; gives their names."""
        folder = self._folder(source, dt)
        broken = [path for path in folder.glob(f"*{RECORD}") if _is_broken(path)]
        broken += [path for path in folder.glob(f"*{PART}") if not _is_being_written(path)]
        for path in broken:
            self.set_aside(path)
        return sorted(path.name for path in broken)

    def set_aside(self, path: Path) -> None:
        """Rename a file that must not be used; it stays for a person to look at."""
        path.rename(path.with_name(path.name + TORN))
        sync_folder(path.parent)

    def lock(self, source: str, dt: date) -> AbstractContextManager[Any]:
        """Held by whoever uploads a day, so that no record gets into two batches."""
        folder = self._folder(source, dt)
        make_folder(folder)
        return FileLock(folder / "upload.lock")

    def plan(self, source: str, dt: date, batch_id: str, manifest: bytes) -> Path:
        """Fix on disk what a batch holds before anything of it is uploaded; gives the plan's path."""
        path = self._folder(source, dt) / f"{batch_id}{PLAN}"
        write_durably(path, manifest)
        return path

    def plans(self, source: str, dt: date) -> list[Path]:
        """Plans of batches that are not registered yet."""
        return sorted(self._folder(source, dt).glob(f"*{PLAN}"))

    def clear(self, source: str, dt: date, plan: Path, fetch_ids: Sequence[str]) -> None:
        """Remove a registered batch's records and its plan; a process that dies in between leaves a `.done` plan."""
        done = plan.with_suffix(DONE)
        if plan.suffix == PLAN:
            plan.replace(done)
            sync_folder(done.parent)
        for fetch_id in fetch_ids:
            (self._folder(source, dt) / f"{fetch_id}{RECORD}").unlink(missing_ok=True)
        sync_folder(done.parent)
        done.unlink(missing_ok=True)

    def cleared_plans(self, source: str, dt: date) -> list[Path]:
        """Plans of batches that are registered and whose records are not all removed yet."""
        return sorted(self._folder(source, dt).glob(f"*{DONE}"))

    def record(self, source: str, dt: date, fetch_id: str) -> SpoolRecord:
        """One record by its fetch id; raises SnapshotCorrupt if it is gone or cannot be read."""
        path = self._folder(source, dt) / f"{fetch_id}{RECORD}"
        try:
            return _read_record(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SnapshotCorrupt(f"spool file {path.name} was planned into a batch and cannot be read") from error

    def _folder(self, source: str, dt: date) -> Path:
        return self.root / source / dt.isoformat()


def _read_record(path: Path) -> SpoolRecord:
    with path.open("rb") as file:
        line = file.readline()
    header = json.loads(line)
    served, rendered = header["lengths"]
    size = path.stat().st_size
    if size != len(line) + (served or 0) + (rendered or 0):
        raise ValueError(f"{path.name} has {size} bytes")
    return SpoolRecord(
        path=path,
        fetch=row_from_json(Fetch, header["fetch"]),
        entries=tuple(row_from_json(Entry, entry) for entry in header["entries"]),
        after=header["after"],
        size=size,
        lengths=(served, rendered),
        sha256=header["sha256"],
        start=len(line),
    )


def _is_broken(path: Path) -> bool:
    try:
        _read_record(path)
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True
    return False


def _is_being_written(part: Path) -> bool:
    pid = writer_pid(part)
    return pid is not None and psutil.pid_exists(pid)
