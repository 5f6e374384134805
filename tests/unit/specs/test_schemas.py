"""Schemas, their versions, templates, checks and URL rules: what cannot be right, and what would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse.specs.checks import Check

Spoil = Callable[[str, str, str], list[str]]
SCHEMA = "schemas/articles/v1.yaml"
TEMPLATE = "templates/news/v1.yaml"
CHECKS = "checks/default.yaml"
RULES = "url_rules.yaml"
TITLE = "{name: title, type: string, description: Title}"
KINDS = "give exactly one of css, xpath, regex, jsonpath, meta, jsonld"
PARAMETER = "give a name such as spm, or a beginning such as utm_*"
FORMS = (
    "types are string, int, long, float, double, boolean, date, timestamp, binary, json, decimal(P,S), list<T>, "
    "map<string,T>, struct<name: T, …>"
)


@pytest.mark.parametrize(
    "case",
    [
        (
            SCHEMA,
            "type: string, description: Title",
            "type: strng, description: Title",
            "10: fields[0].type: type 'strng': 'strng' is no type",
            "did you mean string?",
        ),
        (
            SCHEMA,
            "type: string, description: Title",
            "type: qqqq, description: Title",
            "10: fields[0].type: type 'qqqq': 'qqqq' is no type",
            FORMS,
        ),
        (
            SCHEMA,
            "description: Title}",
            "descripton: Title}",
            "10: fields[0].descripton: unknown key 'descripton'",
            "did you mean 'description'?",
        ),
        (
            SCHEMA,
            "description: Title}",
            "description: Title, required: 1}",
            "10: fields[0].required: is the number 1",
            "it must be true or false",
        ),
        (
            SCHEMA,
            "name: body",
            "name: title",
            "11: fields[1].name: 'title' is already the name of fields[0]",
            "name each once",
        ),
        (
            SCHEMA,
            "name: body",
            "name: snap_key",
            "11: fields[1].name: 'snap_key' is added by itself",
            "remove the field; every such table has this column",
        ),
        (
            SCHEMA,
            "name: body",
            "name: dt",
            "11: fields[1].name: 'dt' is added by itself",
            "remove the field; every such table has this column",
        ),
        (
            SCHEMA,
            "layer: clean",
            "layer: feature",
            "4: table: 'clean.articles' is not in layer feature",
            "write feature.name",
        ),
        (
            SCHEMA,
            "layer: clean",
            "layer: cleen",
            "3: layer: is the text 'cleen'",
            "did you mean 'clean'? it is one of raw, clean, feature, meta",
        ),
        (
            SCHEMA,
            "table: clean.articles",
            "table: Articles",
            "4: table: is the text 'Articles'",
            "write layer.name, such as clean.articles",
        ),
        (
            SCHEMA,
            "frame: record",
            "frame: records",
            "8: frame: is the text 'records'",
            "did you mean 'record'? it is one of none, record",
        ),
        (
            SCHEMA,
            "frame: record",
            "frame: record\npartitioned: day",
            "9: partitioned: is the text 'day'",
            "it is one of source_dt_version, source, none",
        ),
        (
            SCHEMA,
            "frame: record",
            "frame: record\nsort: [-titel]",
            "9: sort[0]: '-titel' is not a column of this table",
            "did you mean 'title'?",
        ),
        (
            SCHEMA,
            TITLE,
            "{name: title, type: double, description: T, values: [1]}",
            "10: fields[0]: a double cannot be an enumeration",
            "remove `values`: string, int and long have them",
        ),
        (
            SCHEMA,
            TITLE,
            "{name: title, type: int, description: T, values: [1, a]}",
            "10: fields[0].values[1]: 'a' is no int",
            "allowed values are of the field's type int",
        ),
        (
            SCHEMA,
            TITLE,
            "{name: title, type: int, description: T, values: [1, true]}",
            "10: fields[0].values[1]: True is no int",
            "allowed values are of the field's type int",
        ),
        (
            SCHEMA,
            TITLE,
            "{name: title, type: int, description: T, values: [1, 1]}",
            "10: fields[0].values: allowed values are empty or repeat themselves",
            "list each value once",
        ),
        (
            SCHEMA,
            TITLE,
            "{name: title, type: int, description: T, values: [1, 3000000000]}",
            "10: fields[0].values[1]: 3000000000 is no int",
            "allowed values are of the field's type int",
        ),
        (
            SCHEMA,
            "frame: record",
            "frame: record\nsort: [tags]",
            "9: sort[0]: 'tags' has no order",
            "sort by columns that hold one value a row",
        ),
        (SCHEMA, "reviewed_by: tester", "", "1: key 'reviewed_by' is missing", "add it: `reviewed_by: …`"),
        (SCHEMA, "version: 1", "version: '1'", "2: version: is the text '1'", "it must be a whole number"),
        (SCHEMA, "version: 1", "version: 0", "2: version: is the number 0", "it must be more than 0"),
        (
            TEMPLATE,
            "title:",
            "titel:",
            "5: fields.titel: no version of articles has a field 'titel'",
            "did you mean 'title'?",
        ),
        (TEMPLATE, "css: h1", "css: h1, xpath: //h1", "5: fields.title.rules[0]: the rule has css and xpath", KINDS),
        (TEMPLATE, "css: h1", "attr: href", "5: fields.title.rules[0]: the rule has no way to find a value", KINDS),
        (TEMPLATE, "{css: h1}", "", "5: fields.title.rules: is empty", "give at least one"),
        (
            TEMPLATE,
            "css: h1",
            "xpth: //h1",
            "5: fields.title.rules[0].xpth: unknown key 'xpth'",
            "did you mean 'xpath'?",
        ),
        (
            TEMPLATE,
            "[strip]",
            "[5]",
            "5: fields.title.then[0]: is the number 5",
            "it must be a mapping of keys to values",
        ),
        (
            TEMPLATE,
            "description:",
            "dataset: artcles\ndescription:",
            "3: dataset: there is no dataset 'artcles'",
            "did you mean 'articles'?",
        ),
        (
            CHECKS,
            "reject,",
            "rejct,",
            "4: rules[0].action: is the text 'rejct'",
            "did you mean 'reject'? it is one of reject, review, flag, drop",
        ),
        (
            CHECKS,
            "title_missing",
            "title_mising",
            "4: rules[0].reason: 'title_mising' is not a reason code",
            "did you mean 'title_missing'?",
        ),
        (
            CHECKS,
            ", present: true",
            "",
            "4: rules[0]: the check demands nothing",
            "give `present: true`, `min`, `above` or `max`",
        ),
        (
            CHECKS,
            "present: true",
            "min: 5, max: 1",
            "4: rules[0]: no value lies between 5 and 1",
            "swap `min` and `max`",
        ),
        (CHECKS, "present: true", "min: '5'", "4: rules[0].min: is the text '5'", "it must be a number"),
        (RULES, "version: 1", "version: one", "1: version: is the text 'one'", "it must be a whole number"),
        (RULES, "spm]", "'a=b']", "2: drop_params[1]: 'a=b' is not a parameter name", PARAMETER),
        (RULES, "spm]", "'*']", "2: drop_params[1]: '*' is not a parameter name", PARAMETER),
        (RULES, "spm]", "'a*b']", "2: drop_params[1]: 'a*b' is not a parameter name", PARAMETER),
        (RULES, "spm]", "spm]\ndrop_ww: true", "3: drop_ww: unknown key 'drop_ww'", "did you mean 'drop_www'?"),
    ],
)
def test_a_wrong_value(problems_of: Spoil, case: tuple[str, str, str, str, str]) -> None:
    file, old, new, wrong, right = case
    assert problems_of(file, old, new) == [f"catalog/{file}:{wrong}; {right}"]


def test_checks_of_a_field_that_a_dataset_lacks(problems_of: Spoil) -> None:
    (found,) = problems_of(CHECKS, "field: title", "field: titel")
    assert found == (
        "catalog/sources/gov.yaml:1: checks: checks 'default' look at titel, which articles@1 does not have; "
        "take checks made for articles"
    )


def second(folder: Any, *changes: tuple[str, str]) -> list[str]:
    """Problems of a catalog with a second version of the schema."""
    text = (folder.root / SCHEMA).read_text().replace("version: 1", "version: 2")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    folder.write("schemas/articles/v2.yaml", text)
    found: list[str] = folder.problems()
    return [problem.removeprefix("catalog/schemas/articles/v2.yaml:") for problem in found]


SHARE = "keep the type or widen it, or add a field with another name and `supersedes: body`"
MORE = "\n  - {name: more, type: string, description: One more}\n"
ONE_TABLE = "all versions of a dataset share one table"


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ("string", "string", True),
        ("string", "json", True),
        ("int", "long", True),
        ("float", "double", True),
        ("'decimal(9,2)'", "'decimal(18,2)'", True),
        ("list<string>", "'list< string >'", True),
        ("long", "int", False),
        ("int", "string", False),
        ("date", "timestamp", False),
        ("'decimal(9,2)'", "'decimal(18,3)'", False),
        ("'decimal(18,2)'", "'decimal(9,2)'", False),
        ("list<string>", "list<long>", False),
    ],
)
def test_a_field_keeps_its_type_or_widens_it(folder: Any, before: str, after: str, fits: bool) -> None:
    folder.change(SCHEMA, "type: string, description: Text", f"type: {before}, description: Text")
    found = second(folder, (f"type: {before}, description: Text}}", f"type: {after}, description: Text}}{MORE}"))
    wrong = f"11: fields[1].type: 'body' is {after}, but v1 has {before}".replace("'decimal", "decimal").replace(
        ")'", ")"
    )
    assert found == ([] if fits else [f"{wrong}; {SHARE}"])


def test_versions_of_a_dataset_share_one_table(folder: Any) -> None:
    assert second(folder, ("clean.articles", "clean.news"), ("frame: record", "frame: none\npartitioned: source")) == [
        f"4: table: is clean.news, but v1 has clean.articles; {ONE_TABLE}",
        f"8: frame: is none, but v1 has record; {ONE_TABLE}",
        f"9: partitioned: is source, but v1 has source_dt_version; {ONE_TABLE}",
    ]


def test_a_new_version_may_add_and_drop_fields(folder: Any) -> None:
    assert second(folder, ("name: body", "name: summary")) == []


SAME = "has the fields, types and allowed values of v1; a new version is for changed data: change a field, or remove"


@pytest.mark.parametrize(
    ("change", "real"),
    [
        (("Text}", "The body text}"), False),
        (("changes: First version.", "changes: Nothing at all."), False),
        (("type: string, description: Text", "type: 'string', unit: words, description: Text"), False),
        (("description: Text}", "description: Text, required: true}"), True),
        (("description: Text}", "description: Text, values: [a, b]}"), True),
        (("type: string, description: Text", "type: json, description: Text"), True),
        (("name: body", "name: summary, supersedes: body"), True),
    ],
)
def test_a_version_changes_more_than_words(folder: Any, change: tuple[str, str], real: bool) -> None:
    assert second(folder, change) == ([] if real else [f"9: fields: {SAME} the file"])


def test_a_field_supersedes_one_of_an_earlier_version(folder: Any) -> None:
    assert second(folder, ("name: body", "name: summary, supersedes: boddy")) == [
        "11: fields[1].supersedes: no earlier version has a field 'boddy'; did you mean 'body'?"
    ]
    assert second(folder, ("name: body", "name: body, supersedes: title")) == [
        f"9: fields: {SAME} the file",
        "11: fields[1].supersedes: 'body' superseded nothing before, now title; what a field means stays",
    ]
    twice = ("name: title", "name: head, supersedes: body"), ("name: body", "name: summary, supersedes: body")
    assert second(folder, *twice) == [
        "11: fields[1].supersedes: 'body' is superseded by 'head' already; let one field stand for it"
    ]


def test_a_template_may_give_a_field_of_any_version(folder: Any) -> None:
    folder.change(TEMPLATE, "title:", "summary:")
    assert second(folder, ("name: body", "name: summary")) == []


def test_two_datasets_cannot_share_a_table(folder: Any) -> None:
    text = (folder.root / SCHEMA).read_text().replace("dataset: articles", "dataset: news")
    folder.write("schemas/news/v1.yaml", text)
    (found,) = folder.problems()
    assert found == (
        "catalog/schemas/news/v1.yaml:4: table: clean.articles is already the table of dataset 'articles'; "
        "give each dataset its own table"
    )


def test_a_meta_table_lists_every_column_itself(folder: Any) -> None:
    text = (folder.root / SCHEMA).read_text().replace("dataset: articles", "dataset: effective")
    text = text.replace("layer: clean", "layer: meta").replace("clean.articles", "meta.effective")
    folder.write(
        "schemas/effective/v1.yaml", text.replace("frame: record", "frame: none").replace("name: body", "name: dt")
    )
    assert folder.problems() == []
    assert folder.load().schema("effective").columns == ("title", "dt")


def check(**bounds: Any) -> Check:
    return Check.model_validate({"field": "a", "reason": "any_flag", "action": "flag", **bounds})


@pytest.mark.parametrize(
    ("bounds", "value", "passes"),
    [
        ({"present": True}, None, False),
        ({"present": True}, "", False),
        ({"present": True}, " \n", False),
        ({"present": True}, [], False),
        ({"present": True}, 0, True),
        ({"present": True}, "x", True),
        ({"min": 2}, "x", False),
        ({"min": 2}, "中文", True),
        ({"min": 2, "max": 3}, ["a"] * 4, False),
        ({"max": 3}, "", True),
        ({"above": 0.5}, 0.5, False),
        ({"above": 0.5}, 0.51, True),
        ({"min": 1}, 0, False),
        ({"min": 1}, True, True),
    ],
)
def test_a_check_passes_or_not(bounds: dict[str, Any], value: Any, passes: bool) -> None:
    assert check(**bounds).passes(value) is passes
