"""`lakehouse lineage`: partitions up and down from one."""

from __future__ import annotations

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json
from lakehouse.errors import ConfigError


@click.command("lineage")
@click.argument("partition")
@click.option("--up", "way", flag_value="up", help="only what it was made from")
@click.option("--down", "way", flag_value="down", help="only what was made from it")
@json_option
def command(partition: str, way: str | None, as_json: bool) -> None:
    """What PARTITION was made from and what was made from it.

    PARTITION is written table/source=…/dt=…/schema_version=…, such as
    clean.articles/source=demo_daily/dt=2025-03-01/schema_version=1.
    """
    from lakehouse.materialize.family import ancestors, descendants, find_partition

    with opened_lake() as lake:
        if partition.count("/") != 3:
            raise ConfigError(f"{partition!r} is no partition; write table/source=…/dt=…/schema_version=…")
        name = find_partition(lake, partition)
        report = {
            "partition": name,
            "up": ancestors(lake, name) if way != "down" else [],
            "down": descendants(lake, name) if way != "up" else [],
        }
    if as_json:
        print_json(report)
        return
    for word, names in (("made from", report["up"]), ("made into", report["down"])):
        for one in names:
            click.echo(f"{word} {one}")
    if not report["up"] and not report["down"]:
        click.echo(f"{name} was made from no partition and none was made from it")
