"""Files beside the data: server-side copies, and small texts written whole or not at all."""

from __future__ import annotations

import secrets
from contextlib import suppress

from pyarrow.fs import FileSystem, LocalFileSystem
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakehouse.errors import ConfigError

GZIP = b"\x1f\x8b"
"""How a gzipped file begins."""


def resolve(io: FileIO, location: str) -> tuple[FileSystem, str]:
    """The file system of a location, and its path there."""
    if not isinstance(io, PyArrowFileIO):
        raise ConfigError(f"files are read through {type(io).__name__}; this project needs PyIceberg's PyArrowFileIO")
    scheme, host, path = PyArrowFileIO.parse_location(location, io.properties)
    return io.fs_by_scheme(scheme, host), path


def copy_file(io: FileIO, old: str, new: str) -> None:
    """Copy a file within its store, without its bytes passing through this process; parents are made."""
    files, source = resolve(io, old)
    _, target = resolve(io, new)
    _make_parent(files, target)
    files.copy_file(source, target)


def write_text(io: FileIO, location: str, text: str) -> None:
    """Write a small text; a reader sees the old or the new one, whole."""
    files, path = resolve(io, location)
    local = isinstance(files, LocalFileSystem)
    written = f"{path}.{secrets.token_hex(4)}.tmp" if local else path
    with files.open_output_stream(written) as stream:
        stream.write(text.encode())
    if local:
        files.move(written, path)


def read_text(io: FileIO, location: str) -> str | None:
    """A small text; None where there is none."""
    data = read_bytes(io, location)
    return None if data is None else data.decode()


def read_bytes(io: FileIO, location: str) -> bytes | None:
    """A small file as it is; None where there is none."""
    files, path = resolve(io, location)
    with suppress(FileNotFoundError), files.open_input_file(path) as stream:
        return bytes(stream.read())
    return None


def _make_parent(files: FileSystem, path: str) -> None:
    if isinstance(files, LocalFileSystem):
        files.create_dir(path.rpartition("/")[0], recursive=True)
