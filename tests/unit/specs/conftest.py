"""A small right catalog in a temporary folder, to be spoiled one thing at a time."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse.errors import CatalogError
from lakehouse.specs.loader import Catalog, load_catalog

FILES = {
    "url_rules.yaml": """\
        version: 1
        drop_params: [utm_*, spm]
        """,
    "checks/default.yaml": """\
        checks: default
        description: What every article must have.
        rules:
          - {field: title, reason: title_missing, action: reject, present: true}
        """,
    "schemas/articles/v1.yaml": """\
        dataset: articles
        version: 1
        layer: clean
        table: clean.articles
        description: Articles.
        changes: First version.
        reviewed_by: tester
        frame: record
        fields:
          - {name: title, type: string, description: Title}
          - {name: body, type: string, description: Text}
        """,
    "templates/news/v1.yaml": """\
        template: news
        version: 1
        description: News pages.
        fields:
          title: {rules: [{css: h1}], then: [strip]}
        """,
    "sources/gov.yaml": """\
        source: gov
        name: City notices
        entry_url: https://www.gov.example/notices/
        template: news@1
        tasks:
          - name: board
            url: https://www.gov.example/notices/
            cron: "30 6 * * *"
            list: {links: a.entry}
        """,
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A catalog folder that tests write into."""

    root: Path

    def write(self, file: str, text: str | bytes) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())

    def change(self, file: str, old: str, new: str) -> None:
        text = (self.root / file).read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        (self.root / file).write_text(text.replace(old, new), encoding="utf-8")

    def load(self) -> Catalog:
        return load_catalog(self.root)

    def problems(self) -> list[str]:
        """What loading says, one problem a line; nothing for a right catalog."""
        try:
            self.load()
        except CatalogError as error:
            return [str(problem) for problem in error.problems]
        return []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "catalog")
    for file, text in FILES.items():
        made.write(file, text)
    return made


@pytest.fixture
def problems_of(folder: Folder) -> Callable[[str, str, str], list[str]]:
    """Problems after one replacement in one file."""

    def changed(file: str, old: str, new: str) -> list[str]:
        folder.change(file, old, new)
        return folder.problems()

    return changed
