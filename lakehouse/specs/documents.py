"""One YAML file as plain values, and where each value stands in it.

A small, strict part of YAML: UTF-8; `true`, `false`, `null` and numbers mean what they say, everything else is text
(`no`, `on` and dates too). Keys are text and stand once; anchors may be used but not to grow a file without bound;
tags and merge keys are refused. PyYAML alone would take the last of two equal keys without a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakehouse.errors import Problem

MAX_FILE_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 40
MAX_DIGITS = 18
TAG = "tag:yaml.org,2002:"
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
PATH_PART = re.compile(r"\[(?P<index>[0-9]+)\]|\[\"(?P<quoted>[^\"]*)\"\]|(?P<word>[^.\[\]]+)")

YamlPath = tuple[str | int, ...]


MEANT = (
    (f"{TAG}bool", re.compile(r"true|false")),
    (f"{TAG}null", re.compile(r"null|~|")),
    (f"{TAG}int", WHOLE),
    (f"{TAG}float", re.compile(rf"{WHOLE.pattern}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")),
)
BEGINNINGS = frozenset("tfn~-+0123456789")


class _Loader(yaml.CSafeLoader):
    """Knows true, false, null, whole numbers and decimals; every other plain scalar is text."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool] | bool) -> str:
        """The tag of a node that names none itself."""
        if kind is not yaml.ScalarNode:
            return f"{TAG}map" if kind is yaml.MappingNode else f"{TAG}seq"
        if isinstance(implicit, tuple) and implicit[0] and (not value or value[0] in BEGINNINGS):
            return next((tag for tag, pattern in MEANT if pattern.fullmatch(value)), f"{TAG}str")
        return f"{TAG}str"


@dataclass(frozen=True, slots=True)
class Document:
    """A file that could be read: `file` is its path below `catalog/`, `data` its values."""

    file: str
    data: dict[str, Any]
    root: yaml.Node

    def problem(self, path: YamlPath, wrong: str, right: str = "") -> Problem:
        """A problem at `path`, with the line of the nearest thing that exists there."""
        return Problem(self.file, path_text(path), wrong, right, self.line_of(path))

    def line_of(self, path: YamlPath) -> int:
        """The line, from 1, of the key or item at `path`, or of the nearest above it."""
        node, line = self.root, self.root.start_mark.line
        for part in path:
            found = _below(node, part)
            if found is None:
                break
            at, node = found
            line = at.start_mark.line
        return int(line) + 1


def read_document(path: Path, file: str) -> tuple[Document | None, list[Problem]]:
    """The document at `path`, as far as it can be read, and everything wrong with the way it is written."""
    if path.exists() and not path.is_file():
        return None, [Problem(file, "", "is not a plain file", "make it a file that you may read")]
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        wrong = f"cannot be read: {error.strerror or error}"
        return None, [Problem(file, "", wrong, "make it a file that you may read")]
    if len(raw) > MAX_FILE_BYTES:
        wrong = f"is larger than {MAX_FILE_BYTES:,} bytes"
        return None, [Problem(file, "", wrong, "declared files are small: check what it holds")]
    return parse_document(raw, file)


def parse_document(raw: bytes, file: str) -> tuple[Document | None, list[Problem]]:
    """The document in `raw`, as far as it can be read, and everything wrong with the way it is written."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        wrong = f"is not UTF-8: byte 0x{raw[error.start]:02X} at offset {error.start}"
        return None, [Problem(file, "", wrong, "save the file as UTF-8", line)]
    try:
        root = _Loader(text).get_single_node()
    except yaml.YAMLError as error:
        return None, [_syntax_problem(error, text, file)]
    if root is None or root.tag == f"{TAG}null":
        return None, [Problem(file, "", "is empty", "write the declaration, or remove the file")]
    reader = _Reader(file)
    data = reader.value(root, ())
    if reader.nodes > MAX_NODES:
        return None, reader.problems
    if not isinstance(data, dict):
        if not reader.problems:
            reader.refuse(root, (), f"holds {kind_of(data)}", "write a mapping of keys to values")
        return None, reader.problems
    return Document(file, data, root), reader.problems


class _Reader:
    """Builds plain values from nodes; gathers problems instead of stopping at the first."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.nodes = 0

    def refuse(self, node: yaml.Node, path: YamlPath, wrong: str, right: str) -> None:
        self.problems.append(Problem(self.file, path_text(path), wrong, right, node.start_mark.line + 1))

    def value(self, node: yaml.Node, path: YamlPath) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            if self.nodes == MAX_NODES + 1:
                self.refuse(node, (), f"grows to more than {MAX_NODES:,} values", "write it without aliases")
            return None
        if len(path) > MAX_DEPTH:
            self.refuse(node, path[:3], f"is nested deeper than {MAX_DEPTH}", "no declared file needs that depth")
            self.nodes = MAX_NODES + 1
            return None
        if node.tag == f"{TAG}map" and isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if node.tag == f"{TAG}seq" and isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, at)) for at, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        self.refuse(node, path, f"has the tag {_short_tag(node.tag)}", "remove the tag; tags are not allowed")
        return None

    def mapping(self, node: yaml.MappingNode, path: YamlPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            if key is None:
                continue
            if key in lines:
                wrong = f"key {key!r} stands twice, first in line {lines[key]}"
                self.refuse(key_node, (*path, key), wrong, "keep one of them")
                continue
            lines[key] = key_node.start_mark.line + 1
            result[key] = self.value(value_node, (*path, key))
        return result

    def key(self, node: yaml.Node, path: YamlPath) -> str | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"{TAG}str":
            shown = repr(node.value[:40]) if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            self.refuse(node, path, f"has {shown} as a key", "keys are text: put it in quotes, or mend the line")
            return None
        if node.value == "<<":
            self.refuse(node, path, "has a merge key <<", "write the keys out; merging is not allowed")
            return None
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, path: YamlPath) -> Any:
        text: str = node.value
        if node.tag == f"{TAG}str":
            return text
        if node.tag == f"{TAG}null":
            return None
        if node.tag == f"{TAG}bool" and text in {"true", "false"}:
            return text == "true"
        if node.tag == f"{TAG}int" and WHOLE.fullmatch(text) and len(text) <= MAX_DIGITS:
            return int(text)
        if node.tag == f"{TAG}float" and len(text) <= 40 and (number := _finite(text)) is not None:
            return number
        if node.tag in {f"{TAG}int", f"{TAG}float"}:
            self.refuse(node, path, f"{text[:40]!r} is no number that can be kept exactly", "put it in quotes for text")
        else:
            self.refuse(node, path, f"has the tag {_short_tag(node.tag)}", "remove the tag; tags are not allowed")
        return None


def path_text(path: YamlPath) -> str:
    """`("tasks", 0, "cron")` as `tasks[0].cron`; keys that are no plain words are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{"".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in part[:60])}"]'
    return text


def read_path(text: str) -> YamlPath:
    """`tasks[0].cron` as `("tasks", 0, "cron")`; the inverse of `path_text`."""
    parts = PATH_PART.finditer(text)
    return tuple(int(part["index"]) if part["index"] else part["quoted"] or part["word"] for part in parts)


def kind_of(value: Any) -> str:
    """A YAML value in words, such as `the text 'x'` or `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 60 else f"the text {value[:57] + '...'!r}"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _short_tag(tag: str) -> str:
    return repr(tag.replace(TAG, "!!")[:60])


def _below(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return key, value
    return None


def _syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    line = None if mark is None else min(mark.line, max(len(text.splitlines()) - 1, 0)) + 1
    if isinstance(error, yaml.reader.ReaderError):
        character = error.character if isinstance(error.character, int) else ord(str(error.character)[:1] or "\0")
        line = text.count("\n", 0, error.position) + 1
        wrong = f"holds the control character U+{character:04X}"
        return Problem(file, "", wrong, "remove it, or write it as an escape in double quotes", line)
    said = str(getattr(error, "problem", None) or error)
    written = text.splitlines()[line - 1] if line is not None and text else ""
    indent = written[: len(written) - len(written.lstrip())]
    if "\t" in indent:
        return Problem(file, "", "is indented with a tab", "indent with spaces", line)
    column = "" if mark is None else f" at column {mark.column + 1}"
    return Problem(file, "", f"is not YAML: {said}{column}", _syntax_hint(said), line)


def _syntax_hint(said: str) -> str:
    if "mapping values are not allowed" in said:
        return "put text that holds a colon in quotes, and check the indentation"
    if "cannot start any token" in said:
        return "put text that begins with such a sign in quotes"
    if "another document" in said or "single document" in said:
        return "one file holds one declaration: remove the second '---'"
    if "undefined alias" in said:
        return "put text that begins with * in quotes"
    if "nesting" in said:
        return "no declared file needs that depth"
    return "mend the line; quotes and brackets must close, items of one list stand below each other"
