"""README and guides say what is there: commands with their options, make targets, links, and YAML that is right."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml

from lakehouse.cli import main
from lakehouse.parse import judge_template
from lakehouse.settings import Settings
from lakehouse.specs.loader import load_catalog
from tests.doc_examples import PAGES, ROOT, blocks, lakehouse_commands, shell_commands

LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
SETTING = re.compile(r"`(LAKEHOUSE_[A-Z0-9_]+)[=`]")


def parse_without_running(words: list[str]) -> None:
    """Fails with a usage error for a command, option or argument that does not exist."""
    command: click.Command = main
    context = click.Context(main, info_name="lakehouse")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name!r}")
        command, context = found, click.Context(found, parent=context, info_name=name, resilient_parsing=False)
    if rest not in (["--help"], ["-h"]):
        with pytest.MonkeyPatch.context() as patch:
            # Files that an example names need not exist here.
            for parameter in command.params:
                if isinstance(parameter.type, click.Path):
                    patch.setattr(parameter, "type", click.Path())
            command.parse_args(context, rest)
    context.close()


@pytest.mark.parametrize(("page", "words"), lakehouse_commands(), ids=lambda value: " ".join(value)[:60])
def test_every_command_and_option_exists(page: str, words: list[str]) -> None:
    try:
        parse_without_running(words)
    except click.UsageError as error:
        pytest.fail(f"{page}: lakehouse {' '.join(words)}: {error.format_message()}")


def test_an_option_that_does_not_exist_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parse_without_running(["stat", "--no-such-option"])
    with pytest.raises(click.UsageError):
        parse_without_running(["no-such-command"])


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for _, words in shell_commands() if words[0] == "make" for word in words[1:] if "=" not in word}
    assert named
    assert named <= targets


def test_every_link_inside_the_project_leads_somewhere() -> None:
    dead, seen = [], 0
    for page in PAGES:
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            target = urlsplit(match["target"])
            if target.scheme or not target.path:
                continue
            seen += 1
            if not (page.parent / target.path).exists():
                dead.append(f"{page.name}: {match['target']}")
    assert seen > 5
    assert dead == []


def test_every_setting_that_is_named_exists() -> None:
    known = {f"LAKEHOUSE_{name.upper()}" for name in Settings.model_fields} | {"LAKEHOUSE_CACHE"}
    named = {name for page in PAGES for name in SETTING.findall(page.read_text(encoding="utf-8"))}
    assert "LAKEHOUSE_PROFILE" in named
    assert named <= known


def test_yaml_examples_are_a_right_catalog(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(ROOT / "catalog", catalog)
    examples = [yaml.safe_load(block.text) for block in blocks("yaml")]
    sources = [example for example in examples if "source" in example]
    templates = [example for example in examples if "template" in example and "fields" in example]
    assert sources
    assert templates
    for source in sources:
        (catalog / "sources" / f"{source['source']}.yaml").write_text(yaml.safe_dump(source), encoding="utf-8")
    for template in templates:
        folder = catalog / "templates" / template["template"]
        folder.mkdir(exist_ok=True)
        (folder / f"v{template['version']}.yaml").write_text(yaml.safe_dump(template), encoding="utf-8")
    loaded = load_catalog(catalog, judge_template)
    assert {source["source"] for source in sources} <= set(loaded.sources)


def test_both_readmes_show_the_same_commands() -> None:
    shown = {
        name: [words for page, words in shell_commands() if page == name] for name in ("README.md", "README.zh-CN.md")
    }
    assert shown["README.md"]
    assert shown["README.md"] == shown["README.zh-CN.md"]
    code = {block.page: block.text for block in blocks("python")}
    assert code["README.md"] == code["README.zh-CN.md"]
