"""Documents as models, and what pydantic finds wrong in the words of this project.

Values are taken as they are written: no text becomes a number, no `yes` becomes true. A key with a typo is reported
and then read as the key it was meant to be, so that one look finds everything that is wrong in a file.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lakehouse.errors import Problem
from lakehouse.specs.base import Declared, Misfit, near_names, nearest_name
from lakehouse.specs.documents import Document, YamlPath, kind_of

Model = TypeVar("Model", bound=Declared)

KINDS = {
    "string_type": "text: put it in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}
BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
PATTERNS = {
    r"^[a-z][a-z0-9_]{0,63}$": "use lower-case letters, digits and _, a letter first, at most 64",
    r"^[a-z][a-z0-9_]{0,63}@[1-9][0-9]{0,5}$": "write name@version, such as articles@1",
    r"^[1-9][0-9]{0,5}(s|m|h|d)$": "write a number and s, m, h or d, such as 15m",
    r"^[a-z]{2}$": "write two lower-case letters, such as zh or en",
    r"^(raw|clean|feature|meta)\.[a-z][a-z0-9_]{0,63}$": "write layer.name, such as clean.articles",
}


def build_spec(model: type[Model], document: Document) -> tuple[Model | None, list[Problem]]:
    """The model of a document, None where it has problems that leave no model, and all the problems."""
    problems: list[Problem] = []
    data, renamed = document.data, dict[YamlPath, str]()
    while True:
        try:
            return model.model_validate_json(json.dumps(data), strict=True), problems
        except ValidationError as error:
            unknown = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
            if not unknown:
                return None, problems + list(_problems(error, document, renamed))
        data = json.loads(json.dumps(data))
        problems += [_take_unknown(model, document, data, path, renamed) for path in unknown]


def _take_unknown(
    model: type[Declared], document: Document, data: dict[str, Any], path: YamlPath, renamed: dict[YamlPath, str]
) -> Problem:
    """Read the unknown key at `path` of `data` as the key it was meant to be, or drop it; the problem it is."""
    above, key = path[:-1], str(path[-1])
    parent = _value_at(data, above)
    allowed = _keys_at(model, above)
    written = _as_written(path, renamed)
    value = parent.pop(key)
    meant = nearest_name(key, allowed)
    if meant is not None and meant not in parent:
        parent[meant] = value
        renamed[(*above, meant)] = key
    return document.problem(written, f"unknown key {key[:60]!r}", near_names(key, allowed, "keys"))


def _problems(error: ValidationError, document: Document, renamed: Mapping[YamlPath, str]) -> Iterator[Problem]:
    for item in error.errors():
        if item["type"] == "too_short" and item["input"]:
            continue  # an item of the list is wrong, which is reported itself
        path, wrong, right = _in_words(item)
        if path and path[-1] == "[key]":
            path, wrong = path[:-1], f"key {wrong}"
        yield document.problem(_as_written(path, renamed), wrong, right)


def _in_words(item: Mapping[str, Any]) -> tuple[YamlPath, str, str]:
    """Path, what is wrong and what would be right of one pydantic error."""
    path: YamlPath = item["loc"]
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return path[:-1], f"key {path[-1]!r} is missing", f"add it: `{path[-1]}: …`"
    if kind == "value_error":
        reason = context["error"]
        if isinstance(reason, Misfit):
            return (*path, *reason.path), reason.wrong, reason.right
        return path, str(reason), ""
    if kind in {"string_too_short", "too_short"}:
        return path, "is empty", "give at least one" if kind == "too_short" else "write something"
    right = _demand(kind, item["input"], context)
    return (path, str(item["msg"]), "") if right is None else (path, f"is {kind_of(item['input'])}", right)


def _demand(kind: str, given: Any, context: Mapping[str, Any]) -> str | None:
    """What a value must be, by the kind of pydantic error; None for a kind without words here."""
    if kind in KINDS:
        return f"it must be {KINDS[kind]}"
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        return f"it must be {words} {context[key]:g}"
    if kind == "enum":
        return _choice(given, context["expected"].replace("'", "").replace(" or ", ", "))
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        if pattern.startswith("^(") and pattern.endswith(")$"):
            return _choice(given, pattern[2:-2].replace("|", ", "))
        return PATTERNS.get(pattern, f"it must match {pattern}")
    return None


def _choice(given: Any, choices: str) -> str:
    meant = nearest_name(str(given), choices.split(", "))
    return f"did you mean {meant!r}? it is one of {choices}" if meant is not None else f"it is one of {choices}"


def _as_written(path: YamlPath, renamed: Mapping[YamlPath, str]) -> YamlPath:
    """`path` with the keys that stand in the file, where they were read as another."""
    return tuple(renamed.get(path[: at + 1], part) for at, part in enumerate(path))


def _value_at(data: Any, path: YamlPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _keys_at(model: type[BaseModel], path: YamlPath) -> tuple[str, ...]:
    """The keys that the model at `path` allows."""
    shape: Any = model
    for part in path:
        shape = _part_of(shape, part)
    found = _model_in(shape)
    return tuple(found.model_fields) if found is not None else ()


def _part_of(shape: Any, part: str | int) -> Any:
    found = _model_in(shape)
    if found is not None and isinstance(part, str) and part in found.model_fields:
        return found.model_fields[part].annotation
    for choice in _choices(shape):
        arguments = typing.get_args(choice)
        if typing.get_origin(choice) is tuple and isinstance(part, int):
            return arguments[0]
        if typing.get_origin(choice) is dict and isinstance(part, str):
            return arguments[1]
    return None


def _model_in(shape: Any) -> type[BaseModel] | None:
    for choice in _choices(shape):
        if isinstance(choice, type) and issubclass(choice, BaseModel):
            return choice
    return None


def _choices(shape: Any) -> tuple[Any, ...]:
    return typing.get_args(shape) if typing.get_origin(shape) in {typing.Union, types.UnionType} else (shape,)
