"""A catalog as a whole: what it gives, and every problem of it at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse.errors import CatalogError, Problem, UnknownNameError
from lakehouse.model.partition import Layer
from lakehouse.specs.loader import Catalog, load_catalog
from lakehouse.specs.template import TemplateSpec
from lakehouse.specs.types import parse_type

OWN_CATALOG = Path(__file__).parents[3] / "catalog"
COUNT_UP = "versions count up from 1 and stay: rows refer to them"
ALL_TABLES = (
    *("raw.fetches", "raw.entries", "raw.tasks", "raw.snapshots", "clean.articles", "clean.rejects", "clean.outcomes"),
    *("feature.articles", "feature.articles_current", "feature.source_daily", "meta.decisions", "meta.effective"),
)
OWN_TABLES = {
    "raw.fetches": "batch_id task_id worker_id kind fetcher request_url url url_fp final_url redirects "
    "remote_addr attempt status error limited request_headers response_headers media_type charset charset_votes "
    "elapsed_ms body_bytes content_sha256 snap_key rendered_sha256 rendered_key collect_time fetch_id",
    "raw.entries": "batch_id task_id list_url_fp page_no position url url_fp entry collect_time",
    "raw.snapshots": "fetch_id batch_id part url_fp snap_key media_type charset content_sha256 collect_time body",
    "clean.articles": "url url_fp canonical_fp url_rules_version content_hash title publish_time "
    "time_confidence author origin body body_chars body_quality paragraphs language tags flags fetch_id task_id "
    "template template_version collect_time snap_key",
    "clean.rejects": "stage action reason detail row fetch_id url_fp task_id template template_version collect_time "
    "snap_key",
    "clean.outcomes": "fetch_id outcome reason rows_out",
}


def test_a_right_catalog_gives_what_it_declares(folder: Any) -> None:
    catalog = folder.load()
    assert folder.problems() == []
    assert list(catalog.sources) == ["gov"]
    assert catalog.source("gov").tasks[0].cron == "30 6 * * *"
    assert catalog.template("news@1").fields["title"].then[0].do == "strip"
    assert catalog.schema("articles").version == 1
    assert catalog.schema("articles", 1) is catalog.table_schema("clean.articles")
    assert catalog.check_list("default").rules[0].reason == "title_missing"
    assert catalog.tables() == ("clean.articles",)
    assert catalog.url_rules.drop_params == ("utm_*", "spm")


def test_versions_are_ascending_and_the_newest_is_the_default(folder: Any) -> None:
    text = (folder.root / "schemas/articles/v1.yaml").read_text()
    more = "  - {name: field_1, type: string, description: One more}\n"
    for version in range(2, 12):
        folder.write(f"schemas/articles/v{version}.yaml", text.replace("version: 1", f"version: {version}") + more)
        more += f"  - {{name: field_{version}, type: string, description: One more}}\n"
    catalog = folder.load()
    assert [spec.version for spec in catalog.schemas["articles"]] == list(range(1, 12))
    assert catalog.schema("articles").version == 11
    assert catalog.table_schema("clean.articles", 3).version == 3


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.source("gvo"), "there is no source 'gvo' in the catalog; did you mean 'gov'?"),
        (lambda c: c.source("qq"), "there is no source 'qq' in the catalog; sources are gov"),
        (lambda c: c.template("nws@1"), "there is no template 'nws@1' in the catalog; did you mean 'news@1'?"),
        (lambda c: c.template("news@9"), "template 'news' has no version '9'; its versions are 1"),
        (lambda c: c.template("news"), "template 'news' has no version ''; its versions are 1"),
        (lambda c: c.schema("artikles"), "there is no dataset 'artikles' in the catalog; did you mean 'articles'?"),
        (lambda c: c.schema("articles", 2), "dataset 'articles' has no version '2'; its versions are 1"),
        (
            lambda c: c.table_schema("clean.article"),
            "there is no table 'clean.article' in the catalog; did you mean 'clean.articles'?",
        ),
        (lambda c: c.check_list("x"), "there is no list of checks 'x' in the catalog; lists of checks are default"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(
    folder: Any, ask: Callable[[Catalog], object], message: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ask(folder.load())
    assert str(caught.value) == message


def test_all_problems_of_all_files_come_at_once_and_sorted(folder: Any) -> None:
    folder.change("sources/gov.yaml", "cron:", "crn:")
    folder.change("sources/gov.yaml", "news@1", "news@7")
    folder.change("templates/news/v1.yaml", "css: h1", "css: h1, xpath: //h1")
    folder.write("sources/b.yaml", "a: [")
    folder.write("checks/strict.yaml", b"\xff")
    (folder.root / "url_rules.yaml").unlink()
    with pytest.raises(CatalogError) as caught:
        folder.load()
    problems = caught.value.problems
    assert [(p.file, p.line, p.path) for p in problems] == [
        ("catalog/checks/strict.yaml", 1, ""),
        ("catalog/sources/b.yaml", 1, ""),
        ("catalog/sources/gov.yaml", 4, "template"),
        ("catalog/sources/gov.yaml", 8, "tasks[0].crn"),
        ("catalog/templates/news/v1.yaml", 5, "fields.title.rules[0]"),
        ("catalog/url_rules.yaml", None, ""),
    ]
    assert str(caught.value).startswith("catalog has 6 problems:\n  catalog/checks/strict.yaml:1: is not UTF-8")
    assert caught.value.exit_code == 2


def test_a_folder_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="does not exist; run in the project's folder, or set LAKEHOUSE_CATALOG_DIR"):
        load_catalog(tmp_path / "gone")
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="is not a folder"):
        load_catalog(tmp_path / "file")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("sources/B.yaml", "name it sources/<name>.yaml, names in lower-case letters, digits and _"),
        ("sources/x.yml", "name it sources/<name>.yaml, names in lower-case letters, digits and _"),
        ("sources/x.yaml.bak", "name it sources/<name>.yaml, names in lower-case letters, digits and _"),
        ("sources/x-y.yaml", "name it sources/<name>.yaml, names in lower-case letters, digits and _"),
        ("sources/more/x.yaml", "name it sources/<name>.yaml, names in lower-case letters, digits and _"),
        ("templates/x.yaml", "name it templates/<name>/v<number>.yaml, names in lower-case letters, digits and _"),
        ("templates/x/1.yaml", "name it templates/<name>/v<number>.yaml, names in lower-case letters, digits and _"),
        ("templates/x/v01.yaml", "name it templates/<name>/v<number>.yaml, names in lower-case letters, digits and _"),
        ("schemas/x/v0.yaml", "name it schemas/<dataset>/v<number>.yaml, names in lower-case letters, digits and _"),
    ],
)
def test_a_file_that_nothing_would_read_is_a_problem(folder: Any, file: str, message: str) -> None:
    folder.write(file, "a: 1")
    assert folder.problems() == [f"catalog/{file}: is not where a declared file belongs; {message}"]


def test_an_unknown_part_of_the_catalog_is_a_problem(folder: Any) -> None:
    folder.write("surces/x.yaml", "a: 1")
    assert folder.problems() == ["catalog/surces: is not a part of the catalog; did you mean 'sources'?"]


def test_a_folder_that_contains_itself_ends(folder: Any) -> None:
    (folder.root / "sources" / "again").symlink_to(folder.root / "sources", target_is_directory=True)
    (folder.root / "sources" / "more").symlink_to(folder.root, target_is_directory=True)
    assert [problem.partition(":")[0] for problem in folder.problems()] == [
        "catalog/sources/again",
        "catalog/sources/more",
    ]


def test_a_file_name_that_is_no_text_can_be_shown(folder: Any) -> None:
    (folder.root / "sources" / os.fsdecode(b"\xff\n.yaml")).touch()
    (found,) = folder.problems()
    assert found.startswith("catalog/sources/\\udcff\\n.yaml: is not where a declared file belongs")
    assert found.encode("utf-8").decode("utf-8") == found


def test_notes_and_hidden_files_are_left_alone(folder: Any) -> None:
    folder.write("README.md", "notes")
    folder.write("sources/README.md", "notes")
    folder.write("sources/.x.yaml.swp", b"\x00")
    folder.write("sources/.git/x.yaml", "a: [")
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("sources/gov.yaml", "source: gov", "source: gvo", "1: source: is 'gvo', but the file's place says 'gov'"),
        (
            "checks/default.yaml",
            "checks: default",
            "checks: x",
            "1: checks: is 'x', but the file's place says 'default'",
        ),
        ("schemas/articles/v1.yaml", ": articles", ": x", "1: dataset: is 'x', but the file's place says 'articles'"),
        ("templates/news/v1.yaml", "version: 1", "version: 2", "2: version: is 2, but the file is named v1.yaml"),
    ],
)
def test_a_file_says_the_name_that_its_place_says(
    problems_of: Any, file: str, old: str, new: str, message: str
) -> None:
    key, _, name = old.partition(": ")
    found = problems_of(file, old, new)
    assert [problem.partition("; ")[0] for problem in found] == [f"catalog/{file}:{message}"]
    assert found[0].partition("; ")[2].startswith(f"write `{key or 'dataset'}: {name}`, or ")


def test_a_gap_between_versions_is_a_problem(folder: Any) -> None:
    text = (folder.root / "templates/news/v1.yaml").read_text()
    folder.write("templates/news/v4.yaml", text.replace("version: 1", "version: 4"))
    assert folder.problems() == [f"catalog/templates/news: has v4 but not v2, v3; {COUNT_UP}"]


def test_a_huge_version_number_is_answered_at_once(folder: Any) -> None:
    text = (folder.root / "templates/news/v1.yaml").read_text()
    folder.write("templates/news/v999999.yaml", text.replace("version: 1", "version: 999999"))
    assert folder.problems() == [f"catalog/templates/news: has v999999 but not v2, v3, v4, v5, v6 and more; {COUNT_UP}"]


def test_what_the_judge_of_templates_says_has_file_and_line(folder: Any) -> None:
    def judge(spec: TemplateSpec) -> Iterator[tuple[str, str, str]]:
        assert spec.ref == "news@1"
        yield "fields.title.then[0]", "unknown step 'strip'", "use another"

    with pytest.raises(CatalogError) as caught:
        load_catalog(folder.root, judge)
    assert caught.value.problems == (
        Problem("catalog/templates/news/v1.yaml", "fields.title.then[0]", "unknown step 'strip'", "use another", 5),
    )


def test_the_own_catalog_is_right_and_registers_every_table_of_the_design() -> None:
    catalog = load_catalog(OWN_CATALOG)
    assert catalog.tables() == tuple(sorted(ALL_TABLES))
    for table, columns in OWN_TABLES.items():
        spec = catalog.table_schema(table)
        assert set(spec.columns) == {"source", "dt", "schema_version", *columns.split()}, table


def test_the_own_schemas_partition_as_the_design_says() -> None:
    catalog = load_catalog(OWN_CATALOG)
    partitioned = {table: catalog.table_schema(table).partitioned for table in catalog.tables()}
    assert {table for table, kind in partitioned.items() if kind == "none"} == {"meta.decisions", "meta.effective"}
    assert {table for table, kind in partitioned.items() if kind == "source"} == {"feature.articles_current"}
    for specs in catalog.schemas.values():
        for field in specs[-1].fields:
            assert str(parse_type(field.type))
            assert not field.name.endswith("_time") or field.type == "timestamp"
    assert {f.name for f in catalog.schema("effective").fields} >= {"source", "dt", "schema_version"}
    assert catalog.schema("effective").layer is Layer.META


def test_the_own_default_checks_draw_the_lines_where_they_were_agreed() -> None:
    rules = {rule.reason: rule for rule in load_catalog(OWN_CATALOG).check_list("default").rules}
    assert [rules["title_too_long"].passes("x" * n) for n in (0, 1, 100, 101)] == [False, True, True, False]
    assert [rules["body_too_short"].passes("x" * n) for n in (200, 201)] == [False, True]
    assert [rules["low_quality"].passes(value) for value in (0.5, 0.5001)] == [False, True]
    assert [rules["time_unknown"].passes(value) for value in (0, 1, 2)] == [False, True, True]
    assert [rules["title_missing"].passes(value) for value in (None, " ", "x")] == [False, False, True]
    assert [rule.action for rule in rules.values()] == ["reject", "reject", "reject", "review", "review", "flag"]
