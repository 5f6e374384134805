"""`python -m infra install|up|down|status`: what `make up`, `make down` and `make status` run."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import click

from infra import containers, launcher, programs
from infra.launcher import TITLES, ServerStatus
from infra.processes import process_identity
from infra.state import load_state
from lakehouse.cli.output import json_option, print_json
from lakehouse.errors import LakehouseError, UnavailableError
from lakehouse.settings import Profile, load_settings

home_option = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="folder whose `servers` folder holds all data; LAKEHOUSE_HOME or .lakehouse by default",
)
processes_option = click.option("--processes", is_flag=True, help="run processes even where a Docker engine answers")


class Commands(click.Group):
    """Turns our errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error of ours ends the program with its exit code."""
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            click.echo(f"infra: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Install and run the servers of the `server` profile on this machine."""


@main.command()
def install() -> None:
    """Install whatever is missing of PostgreSQL, MinIO, Trino, Chromium and fonts."""
    programs.install_all(say)


@main.command()
@home_option
@processes_option
def up(home: Path | None, processes: bool) -> None:
    """Start the servers and save their addresses; a second time does nothing."""
    home = home or default_home()
    if in_containers(home, processes):
        containers.start(home, say)
    else:
        programs.install_all(say, servers_only=True)
        launcher.start(home, say=say)
    say(f"addresses and credentials are in {home / 'server.env'}; LAKEHOUSE_PROFILE=server reads them")


@main.command()
@home_option
@click.option("--after", type=int, metavar="PID", help="wait first until this process has ended, however it ends")
def down(home: Path | None, after: int | None) -> None:
    """Stop what `up` started; the data stays."""
    home = home or default_home()
    if after is not None:
        wait_for_end(after)
    state = load_state(home)
    if state is not None and state.engine == "docker":
        containers.stop(home)
    elif not launcher.stop(home, say):
        say("nothing runs")


@main.command()
@home_option
@json_option
def status(home: Path | None, as_json: bool) -> None:
    """Say which server runs where; exit code 1 if one died or does not answer."""
    home = home or default_home()
    state = load_state(home)
    rows = containers.read_status(home) if state and state.engine == "docker" else launcher.read_status(home)
    if as_json:
        print_json([dataclasses.asdict(row) for row in rows])
    else:
        for row in rows:
            click.echo(status_line(row))
    sys.exit(any(row.state in {"died", "not answering"} for row in rows))


def wait_for_end(pid: int) -> None:
    """Return when the process has ended; at once if it does not run."""
    identity = process_identity(pid)
    while identity is not None and process_identity(pid) == identity:
        time.sleep(0.5)


def status_line(row: ServerStatus) -> str:
    """One server's line, with the end of its log if it died."""
    where = f" on {row.address}" if row.state in {"running", "not answering"} else ""
    pid = f", pid {row.pid}" if row.pid else ""
    line = f"{TITLES[row.name]:<11} {row.state}{where}{pid}"
    if row.state == "died":
        line += f"; `make up` starts it again. The end of {row.log}:\n{row.log_tail}"
    elif row.state == "not answering":
        line += f"; see {row.log}"
    return line


def default_home() -> Path:
    """The home that the settings name."""
    return load_settings(profile=Profile.LOCAL).home


def in_containers(home: Path, processes: bool) -> bool:
    """Whether this home's servers are containers: as they were started, else wherever an engine answers."""
    state = load_state(home)
    known = state.engine if state is not None and state.prepared else None
    if processes or known == "processes":
        return False
    answers = containers.engine_answers()
    if known == "docker" and not answers:
        raise UnavailableError(
            f"the data of {home} lies in containers' volumes and no Docker engine answers; start it, or begin anew "
            "as processes with `python -m infra up --processes`"
        )
    return answers


def say(message: str) -> None:
    """Print one line of progress at once."""
    click.echo(message)


if __name__ == "__main__":
    main(prog_name="python -m infra")
