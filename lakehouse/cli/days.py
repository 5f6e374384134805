"""Which source days a command works on, why and by whom, and a lake opened for one command."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from lakehouse.clock import days_between
from lakehouse.errors import ConfigError
from lakehouse.lake import Lake, open_lake
from lakehouse.logs import configure_logs
from lakehouse.model.partition import SourceDay
from lakehouse.settings import load_settings

Command = TypeVar("Command", bound=Callable[..., Any])


def day_options(command: Command) -> Command:
    """`--dt DAY`, or `--from DAY --to DAY`."""
    for option in (
        click.option("--to", "last", help="last day of a range; today by default"),
        click.option("--from", "first", help="first day of a range, YYYY-MM-DD"),
        click.option("--dt", help="one business day, YYYY-MM-DD; today by default"),
    ):
        command = option(command)
    return command


def words_options(made: Command) -> Command:
    """`--reason` and `--who`."""
    made = click.option("--who", default=getpass.getuser, help="who decides; the user by default")(made)
    return click.option("--reason", required=True, help="why, in words; kept for good")(made)


@contextmanager
def opened_lake() -> Iterator[Lake]:
    """The lake of the settings, with logs to standard error; closed at the end."""
    settings = load_settings()
    configure_logs(settings.clock, settings.log_format, settings.log_level)
    with open_lake(settings) as lake:
        yield lake


def source_days(
    lake: Lake, sources: Sequence[str], dt: str | None, first: str | None, last: str | None
) -> list[SourceDay]:
    """Every source on every day; raises UnknownNameError for a source, ConfigError for days that cannot be."""
    for source in sources:
        lake.catalog.source(source)
    if dt is not None and (first is not None or last is not None):
        raise ConfigError("--dt names one day and --from, --to a range; give one of the two")
    if last is not None and first is None:
        raise ConfigError("--to ends a range; give its first day with --from")
    asked = first or dt
    begin = lake.clock.parse_day(asked) if asked else lake.clock.today()
    end = lake.clock.parse_day(last) if last else lake.clock.today() if first else begin
    if end < begin:
        raise ConfigError(f"the range ends on {end}, before it begins on {begin}; swap --from and --to")
    return [SourceDay(source, day) for source in sources for day in days_between(begin, end)]
