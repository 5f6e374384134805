"""A lake beside a demo site whose letters have two templates, which differ in the author, and two schema versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import failed_days
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.settings import Settings, load_settings
from lakehouse.tables.content import content_hash

ROOT = Path(__file__).parents[1]
SOURCE = "demo_daily"
TABLES = ("clean.articles", "clean.outcomes", "clean.rejects", "feature.articles", "feature.source_daily")


@contextmanager
def letters(
    folder: Path, settings: Callable[..., Settings] = load_settings, *, versions: int = 2
) -> Iterator[Settings]:
    """Settings of a lake while its site runs, an empty one on the local profile by default."""
    with run_site() as site:
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        template = yaml.safe_load((catalog / "templates/demo_daily/v1.yaml").read_text("utf-8"))
        template["version"] = 2
        template["fields"]["author"] |= {"then": ["strip"], "rules": [{"regex": "(文 / [^·<]+?) ·"}]}
        (catalog / "templates/demo_daily/v2.yaml").write_text(yaml.safe_dump(template), "utf-8")
        schema = yaml.safe_load((catalog / "schemas/articles/v1.yaml").read_text("utf-8"))
        schema |= {"version": 2, "changes": "Adds subtitle, which letters have."}
        schema["fields"].append({"name": "subtitle", "type": "string", "description": "What stands below the title"})
        if versions > 1:
            (catalog / "schemas/articles/v2.yaml").write_text(yaml.safe_dump(schema), "utf-8")
        yield settings(home=folder / "home", catalog_dir=catalog)


@contextmanager
def lake_with(settings: Settings, template: int = 1, version: int = 1) -> Iterator[Lake]:
    """The lake, opened while the source uses these versions; commands use them too from then on."""
    path = settings.catalog_dir / "sources" / f"{SOURCE}.yaml"
    declared = yaml.safe_load(path.read_text("utf-8"))
    declared |= {"template": f"demo_daily@{template}", "writes": f"articles@{version}"}
    path.write_text(yaml.safe_dump(declared), "utf-8")
    with open_lake(settings) as lake:
        yield lake


def publish(lake: Lake, *days: SourceDay) -> None:
    """Collect, clean and compute features of some days."""
    for materialize in (materialize_raw, materialize_clean, materialize_feature):
        assert failed_days(materialize(lake, days)) == {}


def hashes(lake: Lake, day: SourceDay, version: int = 1) -> dict[str, str]:
    """What each table holds of a day in a schema version."""
    where = [Partition(day.source, day.dt, version)]
    return {table: content_hash(lake.committer.scan(table, where)) for table in TABLES}


def authors(lake: Lake, day: SourceDay) -> set[str]:
    """The authors of a day."""
    found = lake.committer.scan("clean.articles", [Partition(day.source, day.dt, 1)], ["author"])
    return set(found.column("author").to_pylist())


def authors_now(lake: Lake, day: SourceDay) -> set[str]:
    """The authors of a day by the table of newest revisions."""
    rows = lake.committer.scan("feature.articles_current").to_pylist()
    return {row["author"] for row in rows if (row["source"], row["dt"]) == (day.source, day.dt)}
