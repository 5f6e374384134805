"""Tags of table snapshots: one a business day for time travel by day, one a release for readers who need a fixed state.

Day tags are dropped by upkeep after 60 days, release tags only by hand. Never one per partition: every tag makes every
commit slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.snapshot import ManageSnapshots

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, ConflictError, UnknownNameError
from lakehouse.tables.current import check_current, write_current

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

DAY_PREFIX = "day-"
RELEASE_PREFIX = "release-"
DAYS_KEPT = 60
MOST_TAGS = 100
ATTEMPTS = 5
_RELEASE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of a table. `changed` says whether this call made or moved it."""

    table: str
    name: str
    snapshot_id: int
    changed: bool


def tag_day(committer: Committer, table: str, day: date, *, clock: Clock, apply: bool = True) -> Tag | None:
    """Tag the table's state at the end of a business day (today: its state now) as `day-YYYY-MM-DD`.

    Doing it again changes nothing unless the day's state moved on; `apply=False` only says what it would do. None
    where the table had no state by then.
    """
    name = f"{DAY_PREFIX}{day.isoformat()}"
    with committer.locks.hold(table):
        loaded = _load(committer, table)
        metadata = loaded.metadata
        ends_ms = clock.start_of(day + timedelta(days=1)).timestamp() * 1000
        wanted = state_before(metadata, ends_ms)
        present = metadata.refs.get(name)
        if present is not None and (wanted is None or not _is_newer(metadata, wanted, present.snapshot_id)):
            return Tag(table, name, present.snapshot_id, changed=False)
        if wanted is None:
            return None
        if apply:
            change_refs(committer, table, lambda found: found.manage_snapshots().create_tag(wanted, name))
        return Tag(table, name, wanted, changed=True)


def tag_release(committer: Committer, table: str, release: str) -> Tag:
    """Tag the table's state now as `release-<release>`; a tag that stands already is never moved.

    Raises ConfigError for a name that cannot be a tag or a table without rows, ConflictError where 100 tags exist.
    """
    if _RELEASE.fullmatch(release) is None:
        raise ConfigError(f"release {release!r}: use lower-case letters, digits and . _ - up to 64 characters")
    name = f"{RELEASE_PREFIX}{release}"
    with committer.locks.hold(table):
        loaded = _load(committer, table)
        present = loaded.metadata.refs.get(name)
        if present is not None:
            return Tag(table, name, present.snapshot_id, changed=False)
        current = loaded.metadata.current_snapshot_id
        if current is None:
            raise ConfigError(f"release {release} of {table}: the table has no rows yet; materialize something first")
        tags = [ref for ref in loaded.metadata.refs.values() if ref.snapshot_ref_type == "tag"]
        if len(tags) >= MOST_TAGS:
            raise ConflictError(
                f"release {release} of {table}: it has {len(tags)} tags, and more slow every commit down; "
                "run upkeep or drop a release that nobody reads"
            )
        change_refs(committer, table, lambda found: found.manage_snapshots().create_tag(current, name))
        return Tag(table, name, current, changed=True)


def drop_tag(committer: Committer, table: str, name: str) -> bool:
    """Drop a tag; False where there is none. What only it needed goes with the next upkeep."""
    with committer.locks.hold(table):
        loaded = _load(committer, table)
        present = loaded.metadata.refs.get(name)
        if present is None or present.snapshot_ref_type != "tag":
            return False
        change_refs(committer, table, lambda found: found.manage_snapshots().remove_tag(name))
        return True


def day_tags_to_drop(tags: Collection[str], now: datetime, keep_tags: int = MOST_TAGS) -> set[str]:
    """Day tags older than 60 days, and the oldest of the others while there are more than `keep_tags` tags.

    Other tags are never among them: who made one needs what it holds.
    """
    days = sorted(tag for tag in tags if _day_of(tag) is not None)
    oldest = f"{DAY_PREFIX}{(now.date() - timedelta(days=DAYS_KEPT)).isoformat()}"
    dropped = {tag for tag in days if tag < oldest}
    young = [tag for tag in days if tag not in dropped]
    surplus = len(tags) - len(dropped) - keep_tags
    return dropped | set(young[: max(surplus, 0)])


def _day_of(tag: str) -> date | None:
    try:
        return date.fromisoformat(tag.removeprefix(DAY_PREFIX)) if tag.startswith(DAY_PREFIX) else None
    except ValueError:
        return None


def state_before(metadata: TableMetadata, ends_ms: float) -> int | None:
    """The last state of main before an instant; None where there was none, or where it may have been expired.

    Expiry takes entries out of the middle of the log. Then only the parent of the next entry tells that what was before
    it is not the state that the log names.
    """
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    log = [entry for entry in metadata.snapshot_log if entry.snapshot_id in known]
    past = [entry for entry in log if entry.timestamp_ms < ends_ms]
    if not past:
        return None
    later = log[len(past)].snapshot_id if len(past) < len(log) else None
    if later is not None and known[later].parent_snapshot_id != past[-1].snapshot_id:
        return None
    return past[-1].snapshot_id


def _is_newer(metadata: TableMetadata, snapshot_id: int, than: int) -> bool:
    first, second = metadata.snapshot_by_id(snapshot_id), metadata.snapshot_by_id(than)
    if first is None or second is None:
        return second is None
    return (first.sequence_number or 0, first.timestamp_ms) > (second.sequence_number or 0, second.timestamp_ms)


def change_refs(committer: Committer, table: str, change: Callable[[Table], ManageSnapshots]) -> None:
    """Commit a change of tags and branches; again where an engine that does not know the lock committed in between."""
    for _ in range(ATTEMPTS):
        loaded = _load(committer, table)
        check_current(loaded)
        try:
            change(loaded).commit()
        except CommitFailedException:
            continue
        write_current(loaded)
        return
    raise ConflictError(f"tag of {table}: another engine changed the table {ATTEMPTS} times in a row; run it again")


def _load(committer: Committer, table: str) -> Table:
    try:
        return committer.iceberg.load_table(table)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise UnknownNameError(f"tag: table {table} does not exist; materialize something into it first") from error
