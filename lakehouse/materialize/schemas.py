"""Schema versions as the lake knows them: registered when, and with which days written under them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from pyiceberg.exceptions import NoSuchTableError

from lakehouse.errors import CatalogError, Problem
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.specs.differences import compare_versions
from lakehouse.specs.history import rival_claims
from lakehouse.tables.registrations import registered_versions
from lakehouse.tables.registry import unregistered_versions


@dataclass(frozen=True, slots=True)
class Coverage:
    """Days of one source with rows of a version: the first, the last, and how many."""

    source: str
    first: date
    last: date
    days: int


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version: its words, its fields, what they change against the version before, and the days it covers."""

    dataset: str
    version: int
    changes: str
    reviewed_by: str
    fields: tuple[str, ...]
    changed: tuple[str, ...]
    registered_at: datetime | None
    commit: str | None
    coverage: tuple[Coverage, ...]


def version_history(lake: Lake, dataset: str) -> list[VersionLine]:
    """All versions of a dataset, ascending; raises UnknownNameError."""
    newest = lake.catalog.schema(dataset)
    registered = registered_versions(lake.decisions)
    found = [one for one in PartitionIndex(lake.ledger).list(table=newest.table) if one.row_count]
    lines = []
    for at, spec in enumerate(lake.catalog.schemas[dataset]):
        before = lake.catalog.schemas[dataset][at - 1] if at else None
        mark = registered.get((dataset, spec.version))
        lines.append(
            VersionLine(
                dataset,
                spec.version,
                spec.changes,
                spec.reviewed_by,
                tuple(field.name for field in spec.fields),
                tuple(str(one) for one in compare_versions(before, spec)) if before else (),
                mark.decided_at if mark else None,
                mark.decision.payload.get("commit") if mark else None,
                _coverage(one for one in found if one.partition.schema_version == spec.version),
            )
        )
    return lines


def check_schemas(lake: Lake) -> list[Problem]:
    """Versions that other branches claim too, and registered versions that changed or are gone.

    Raises CatalogError with all problems of `catalog/` where it can't be read.
    """
    problems = rival_claims(lake.catalog.root)
    for specs in lake.catalog.schemas.values():
        try:
            unregistered_versions(lake.iceberg.load_table(specs[-1].table), specs)
        except NoSuchTableError:
            continue
        except CatalogError as error:
            problems += error.problems
    return problems


def _coverage(partitions: Iterable[PartitionInfo]) -> tuple[Coverage, ...]:
    days: dict[str, set[date]] = {}
    for one in partitions:
        days.setdefault(one.partition.source, set()).add(one.partition.dt)
    return tuple(Coverage(source, min(some), max(some), len(some)) for source, some in sorted(days.items()))
