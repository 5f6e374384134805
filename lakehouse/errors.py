"""Every error this project raises on purpose, as one tree.

    LakehouseError
    ├── ConfigError            a setting or a file under catalog/ cannot be right; nothing was started
    │   ├── SettingError       one environment variable or .env entry
    │   └── CatalogError       one or more problems in catalog/ (file, path, what is wrong, what would be right)
    ├── UnknownNameError       a source, template, table, version or partition that does not exist
    ├── DataError              data that does not fit what was declared
    │   ├── SchemaMismatch     a frame against a registered schema version
    │   └── SnapshotCorrupt    a stored body whose bytes do not match their hash
    ├── ConflictError          somebody else changed the same thing; the message says how to go on
    ├── UnavailableError       a server, bucket or database does not answer
    ├── FetchError             one exchange with a site failed (carries a reason code)
    │   └── FetchRefused       this project refused to make the exchange (scheme, address, robots, size)
    └── InvariantError         a promise of this project does not hold; a bug here, never in the user's data

A message says what was attempted, on what, and what to do next. The command line prints the message without a
traceback and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class LakehouseError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class ConfigError(LakehouseError):
    """A setting or a declared file cannot be right; raised before any work begins."""

    exit_code = 2


class SettingError(ConfigError):
    """One setting is missing or wrong; the message names the variable and a value that would be right."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in `catalog/`: `file` (relative), `path` inside the YAML, what is wrong, what would be right.

    `line`, from 1, is None where no line can be named.
    """

    file: str
    path: str
    wrong: str
    right: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = f"{place}: {self.path}" if self.path else place
        return f"{where}: {self.wrong}; {self.right}" if self.right else f"{where}: {self.wrong}"


class CatalogError(ConfigError):
    """`catalog/` has problems; all of them are listed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        super().__init__(f"catalog has {len(self.problems)} {noun}:\n" + "\n".join(f"  {p}" for p in self.problems))


class UnknownNameError(LakehouseError):
    """A name that was asked for does not exist; the message lists near or possible names."""

    exit_code = 2


class DataError(LakehouseError):
    """Data does not fit what was declared."""


class SchemaMismatch(DataError):
    """A frame does not fit a registered schema version: names the field, expected and found type, and the file."""


class SnapshotCorrupt(DataError):
    """A stored body does not match its recorded hash, or cannot be decoded; it is never parsed."""


class ConflictError(LakehouseError):
    """Another writer changed the same thing and the operation cannot go on by itself."""


class UnavailableError(LakehouseError):
    """A server, bucket or database does not answer; running again finishes the work once it does."""

    exit_code = 3


class FetchError(LakehouseError):
    """One exchange with a site failed; `reason` is a code from `model.fetch.FETCH_REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class FetchRefused(FetchError):
    """This project refused the exchange: scheme, private address, robots.txt, host not allowed, body too large."""


class InvariantError(LakehouseError):
    """A promise of this project does not hold."""

    exit_code = 4
