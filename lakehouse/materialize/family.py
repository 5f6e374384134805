"""Partitions up and down: what one was made from, and what was made from it, as the index has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.errors import UnknownNameError
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.materialize.index import partition_name
from lakehouse.query.locations import near_names


def find_partition(lake: Lake, name: str) -> str:
    """The name of a partition that the index has; raises UnknownNameError that names near ones."""
    names = [_name(info) for info in PartitionIndex(lake.ledger).list(table=name.partition("/")[0])]
    if name in names:
        return name
    raise UnknownNameError(f"the index has no partition {name}; {near_names(name, names)}")


def ancestors(lake: Lake, name: str) -> list[str]:
    """All partitions that one was made from, nearest first."""
    return _reached({_name(info): info.parents for info in PartitionIndex(lake.ledger).list()}, name)


def descendants(lake: Lake, name: str) -> list[str]:
    """All partitions that were made from one, nearest first."""
    children: dict[str, list[str]] = {}
    for info in PartitionIndex(lake.ledger).list():
        for parent in info.parents:
            children.setdefault(parent, []).append(_name(info))
    return _reached(children, name)


def _reached(steps: Mapping[str, Sequence[str]], start: str) -> list[str]:
    """All that steps lead to, nearest first."""
    found: dict[str, None] = {}
    waiting = [*steps.get(start, ())]
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found[one] = None
            waiting += steps.get(one, ())
    return list(found)


def _name(info: PartitionInfo) -> str:
    return partition_name(info.table, info.partition)
