"""The committer: the one place that changes tables.

Data files are written first; then one lock per table is held around reload and commit. A replace is one table
snapshot. Running the same change again adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.table import Table

from lakehouse.model.partition import Partition
from lakehouse.tables.locks import TableLocks

if TYPE_CHECKING:
    from lakehouse.specs.loader import Catalog


@dataclass(frozen=True, slots=True)
class DataFileInfo:
    """One data file of a partition."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """A partition as it is after a commit: all its rows, number of files, bytes, and content hash."""

    partition: Partition
    rows: int
    files: int
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What a call did to a table. `snapshot_id` is the one this call wrote, else the table's current one."""

    table: str
    snapshot_id: int | None
    changed: bool
    partitions: tuple[PartitionCommit, ...]


class Committer:
    """Appends to, replaces and restores partitions of registered tables."""

    def __init__(self, iceberg: IcebergCatalog, catalog: Catalog, locks: TableLocks, run_id: str) -> None:
        self.iceberg = iceberg
        self.catalog = catalog
        self.locks = locks
        self.run_id = run_id

    def table(self, name: str) -> Table:
        """The table `layer.name` as it is now; made or evolved from its registered schemas where needed."""
        raise NotImplementedError

    def append(self, table: str, frame: pa.Table, *, id_column: str = "batch_id") -> Commit:
        """Add the rows of `frame` whose id is not yet in their partition, as one table snapshot."""
        raise NotImplementedError

    def replace(self, table: str, frame: pa.Table, partitions: Sequence[Partition]) -> Commit:
        """Make `partitions` hold exactly the rows of `frame`, as one table snapshot.

        A partition without rows in `frame` becomes empty; one whose content is the same already is left alone.
        Tables partitioned by source alone match `Partition.source`; unpartitioned ones are replaced as a whole.
        """
        raise NotImplementedError

    def restore(self, table: str, partition: Partition, files: Sequence[str]) -> Commit:
        """Make `partition` hold the rows of earlier data `files` (copied to new names), as one table snapshot."""
        raise NotImplementedError

    def files(self, table: str, partition: Partition) -> tuple[DataFileInfo, ...]:
        """The data files of a partition, by path."""
        raise NotImplementedError

    def scan(
        self, table: str, partitions: Sequence[Partition] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows of the table, of some partitions and columns where given; types as `registry.arrow_schema` has them."""
        raise NotImplementedError


def write_current(table: Table) -> None:
    """Write `<table>/metadata/CURRENT`: the name of the metadata file that is real. Call it under the lock."""
    raise NotImplementedError
