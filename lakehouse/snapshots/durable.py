"""Files that are whole and on disk before their name exists."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

PART = ".part"


def write_durably(path: Path, *pieces: bytes) -> None:
    """Write `pieces` to `path` so that the name appears only with all bytes on disk; the folder is synced as well."""
    make_folder(path.parent)
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}{PART}")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents; each new name is on disk afterwards."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def sync_folder(folder: Path) -> None:
    """Put a folder's names on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def writer_pid(part: Path) -> int | None:
    """The process that was writing a `.part` file, as its name says."""
    pieces = part.name.split(".")
    return int(pieces[-3]) if len(pieces) >= 4 and pieces[-3].isdigit() else None
