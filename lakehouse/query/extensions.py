"""DuckDB's extensions, from the installed wheels: nothing is downloaded at run time."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import duckdb

from lakehouse.errors import ConfigError

EXTENSIONS = ("avro", "httpfs", "iceberg")
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
}


@cache
def extension_file(name: str) -> Path:
    """The extension binary that the wheel `duckdb-extension-<name>` brought; raises ConfigError where it is missing."""
    package = f"duckdb-extension-{name}"
    version = f"v{duckdb.__version__}"
    try:
        found = [
            Path(str(distribution(package).locate_file(file)))
            for file in distribution(package).files or ()
            if file.name == f"{name}.duckdb_extension" and version in file.parts
        ]
    except PackageNotFoundError:
        found = []
    if not found:
        raise ConfigError(
            f"DuckDB {duckdb.__version__} needs the extension {name}, and no installed package has it; "
            f"install {package}=={duckdb.__version__} (`make setup` does)"
        )
    return found[0]


def load_extensions(connection: duckdb.DuckDBPyConnection) -> None:
    """Load what reading Iceberg from files and S3 needs; raises ConfigError where a wheel is missing."""
    for name in EXTENSIONS:
        connection.load_extension(str(extension_file(name)))
