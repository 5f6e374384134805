"""Names of data files: they say what a file holds, so that a commit need not read it again.

    <how>-<fingerprint>-<checksum>-<token>.parquet

`how` is `batch` (appended, exactly one batch, whose id is the fingerprint), `mixed` (appended, several ids),
`state` (a replaced partition), `copy` (restored), `compact` (rows of several files put together) or `hour` (the same,
rows of one hour of a clustered partition). `checksum` is the content hash of the file's rows. `token` is random: no
name is ever used twice.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NAME = re.compile(
    r"(?P<how>batch|mixed|state|copy|compact|hour)-(?P<fingerprint>[0-9a-f]{32})-(?P<checksum>[0-9a-f]{32})-[0-9a-f]+"
)
FINGERPRINT = re.compile(r"[0-9a-f]{32}")


class How(StrEnum):
    """What led to a data file."""

    BATCH = "batch"
    MIXED = "mixed"
    STATE = "state"
    COPY = "copy"
    COMPACT = "compact"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class FileName:
    """What the name of a data file says; the suffix is not part of it."""

    how: How
    fingerprint: str
    checksum: str

    def new(self) -> str:
        """A name that was never used."""
        return f"{self.how}-{self.fingerprint}-{self.checksum}-{secrets.token_hex(8)}"


def parse_name(path: str) -> FileName | None:
    """What a path's file name says; None for a file that another engine wrote."""
    match = NAME.fullmatch(path.rpartition("/")[2].removesuffix(".parquet"))
    if match is None:
        return None
    return FileName(How(match["how"]), match["fingerprint"], match["checksum"])


def fingerprint_ids(ids: Iterable[str]) -> tuple[How, str]:
    """How appended rows with these ids are named: by their one id where it is a fingerprint, else by all of them."""
    ordered = sorted(ids)
    if len(ordered) == 1 and FINGERPRINT.fullmatch(ordered[0]):
        return How.BATCH, ordered[0]
    return How.MIXED, hashlib.sha256("\n".join(ordered).encode()).hexdigest()[:32]
