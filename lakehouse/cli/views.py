"""`lakehouse views`: make the views of all tables of records in Trino, or mend them."""

from __future__ import annotations

import click

from lakehouse.cli.days import opened_lake
from lakehouse.cli.output import json_option, print_json
from lakehouse.errors import ConfigError
from lakehouse.materialize.views import refresh_views


@click.command("views")
@json_option
def command(as_json: bool) -> None:
    """Make _effective, _latest and _compat beside every table of records in Trino.

    Materializing does this by itself when a table's columns change. DuckDB makes its views when they are named.
    """
    with opened_lake() as lake:
        if lake.settings.trino_host is None:
            raise ConfigError("views: no Trino is set up; set LAKEHOUSE_PROFILE=server, or use `lakehouse sql`")
        changed = refresh_views(lake)
    if as_json:
        print_json({"changed": changed})
    else:
        click.echo("\n".join(changed) if changed else "every view is as it should be")
