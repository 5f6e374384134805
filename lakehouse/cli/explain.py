"""`lakehouse explain`: how many files and bytes of the tables a query reads."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from lakehouse.cli.output import json_option, print_json, print_table


@click.command("explain")
@click.argument("query")
@json_option
def command(query: str, as_json: bool) -> None:
    """Run QUERY (- reads it from standard input) and say how much of each table it reads.

    A query that names its source and its days opens only their files.
    """
    import duckdb

    from lakehouse.lake import open_lake
    from lakehouse.query import connect
    from lakehouse.query.reads import measure_reads
    from lakehouse.settings import load_settings

    text = sys.stdin.read() if query == "-" else query
    with open_lake(load_settings()) as lake, connect(lake) as db:
        try:
            found = measure_reads(db, text)
        except duckdb.Error as error:
            raise click.ClickException(str(error)) from error
    if as_json:
        print_json(asdict(found))
        return
    rows = [(one.table, one.files_read, one.files, one.bytes) for one in found.tables]
    print_table(("table", "files read", "of files", "of bytes"), rows)
    click.echo(f"{found.bytes_read:,} bytes read, {found.rows:,} rows, {found.seconds:.2f} s")
