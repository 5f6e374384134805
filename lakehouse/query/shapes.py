"""What a table's metadata file says of its columns and versions; read once a file, since such files never change."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from lakehouse.tables.filesystem import GZIP
from lakehouse.tables.storage import plain_path
from lakehouse.tables.versions import VersionFields, read_versions


@dataclass(frozen=True, slots=True)
class Shape:
    """Names of a table's columns in order, and what each schema version says of its fields.

    `files` and `bytes` count the table's data files, None where its writer did not; they lie below `folder`. `stub` is
    a metadata file of a table with these columns and no rows.
    """

    columns: tuple[str, ...]
    versions: tuple[VersionFields, ...]
    folder: str
    files: int | None
    bytes: int | None
    stub: str


class Shapes:
    """Shapes by metadata location; `read` gives the bytes of a file, with the client and rights of whoever asks."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._known: dict[str, Shape] = {}
        self._folder = TemporaryDirectory(prefix="lakehouse-shapes-")

    def of(self, location: str) -> Shape:
        """The shape of the table whose metadata file is at `location`; raises what reading it raises."""
        if location not in self._known:
            self._known[location] = self._shape_of(self.metadata(location))
        return self._known[location]

    def metadata(self, location: str) -> TableMetadata:
        """A table's metadata from its file; raises what reading it raises."""
        data = self._read(location)
        text = (gzip.decompress(data) if data.startswith(GZIP) else data).decode()
        return TableMetadataUtil.parse_raw(text)

    @property
    def folder(self) -> Path:
        """Where metadata files of this process's own may lie; gone with `close`."""
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove the stubs."""
        self._folder.cleanup()

    def _shape_of(self, metadata: TableMetadata) -> Shape:
        columns = tuple(field.name for field in metadata.schema().fields)
        snapshot = metadata.current_snapshot()
        totals: Mapping[str, str] = {"total-data-files": "0", "total-files-size": "0"}
        if snapshot is not None:
            totals = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        files, size = (totals.get(name) for name in ("total-data-files", "total-files-size"))
        return Shape(
            columns,
            read_versions(metadata.properties),
            plain_path(metadata.location),
            None if files is None else int(files),
            None if size is None else int(size),
            self._write_stub(metadata),
        )

    def _write_stub(self, metadata: TableMetadata) -> str:
        name = hashlib.sha256(metadata.schema().model_dump_json().encode()).hexdigest()[:32]
        path = self.folder / f"{name}.metadata.json"
        if not path.exists():
            nothing: dict[str, object] = {key: [] for key in ("snapshots", "snapshot_log", "metadata_log")}
            nothing |= {"refs": {}, "current_snapshot_id": None}
            path.write_text(metadata.model_copy(update=nothing).model_dump_json())
        return str(path)
