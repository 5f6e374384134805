"""The examples in README and guides: fenced blocks by language, and the commands of the shell blocks."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"^[A-Z_]+=\S*$")


@dataclass(frozen=True)
class Block:
    """One fenced block of one page."""

    page: str
    language: str
    text: str


def blocks(*languages: str) -> list[Block]:
    """All blocks in one of the languages, over all pages."""
    found = [
        Block(page.relative_to(ROOT).as_posix(), match["language"], match["text"])
        for page in PAGES
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]
    return [block for block in found if block.language in languages]


def shell_commands() -> list[tuple[str, list[str]]]:
    """(page, words) of each line of the shell blocks, without leading variables and comments."""
    commands = []
    for block in blocks("sh", "bash"):
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and ASSIGNMENT.match(words[0]):
                words.pop(0)
            if words:
                commands.append((block.page, words))
    return commands


def lakehouse_commands() -> list[tuple[str, list[str]]]:
    """(page, words after `lakehouse`) of each call of our command."""
    return [(page, words[1:]) for page, words in shell_commands() if words[0].rpartition("/")[2] == "lakehouse"]
