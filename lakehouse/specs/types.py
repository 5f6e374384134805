"""Column types as they are written in schema files, parsed into a small tree.

`parse_type` gives one of five frozen shapes; whoever needs Iceberg or Arrow types maps them one to one:

    Scalar(name)            name is one of SCALARS: string int long float double boolean date timestamp binary json
    Decimal(precision, scale)
    ListOf(item)            item is again a tree
    MapOf(value)            keys are always strings
    StructOf(fields)        fields is a tuple of (name, tree) in the written order

`timestamp` is UTC with microseconds; `json` is JSON text stored as a string. `str(tree)` writes the type in its one
normal spelling, so two spellings of one type compare equal and hash equal.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache

SCALARS = ("string", "int", "long", "float", "double", "boolean", "date", "timestamp", "binary", "json")
FORMS = (*SCALARS, "decimal(P,S)", "list<T>", "map<string,T>", "struct<name: T, …>")
MAX_DEPTH = 8
MAX_LENGTH = 1000
MAX_PRECISION = 38
OTHER_NAMES = {
    "str": "string",
    "text": "string",
    "varchar": "string",
    "integer": "int",
    "int32": "int",
    "int64": "long",
    "bigint": "long",
    "float32": "float",
    "float64": "double",
    "number": "double",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "time": "timestamp",
    "bytes": "binary",
    "object": "json",
    "array": "list<T>",
    "dict": "map<string,T>",
    "decimal": "decimal(P,S)",
    "list": "list<T>",
    "map": "map<string,T>",
    "struct": "struct<name: T, …>",
}
TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)|(?P<sign>[<>(),:]))")
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class TypeProblem(ValueError):
    """A type that cannot be read: `wrong` says what, `right` says what would be right."""

    def __init__(self, wrong: str, right: str) -> None:
        self.wrong = wrong
        self.right = right
        super().__init__(f"{wrong}; {right}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts; `name` is one of SCALARS."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ListOf:
    """An ordered list of `item`."""

    item: TypeTree

    def __str__(self) -> str:
        return f"list<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from string to `value`."""

    value: TypeTree

    def __str__(self) -> str:
        return f"map<string,{self.value}>"


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named parts in their written order."""

    fields: tuple[tuple[str, TypeTree], ...]

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{name}: {tree}" for name, tree in self.fields) + ">"


TypeTree = Scalar | Decimal | ListOf | MapOf | StructOf


@lru_cache(maxsize=1024)
def parse_type(text: str) -> TypeTree:
    """The tree of a written type; raises TypeProblem (a ValueError) that says what would be right."""
    if len(text) > MAX_LENGTH:
        raise TypeProblem(f"type {text[:100] + '...'!r} is longer than {MAX_LENGTH} characters", "use a `json` column")
    reader = _Reader(text)
    tree = reader.read_type(1)
    reader.expect_end()
    return tree


class _Reader:
    """Reads one type from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _split_tokens(text)
        self.at = 0

    def read_type(self, depth: int) -> TypeTree:
        if depth > MAX_DEPTH:
            raise self.problem(f"is nested deeper than {MAX_DEPTH}", "use a `json` column for deep structures")
        word = self.take_word("a type")
        if word in SCALARS:
            return Scalar(word)
        if word == "decimal":
            return self.read_decimal()
        if word == "list":
            self.take("<", word)
            item = self.read_type(depth + 1)
            self.take(">", word)
            return ListOf(item)
        if word == "map":
            return self.read_map(depth)
        if word == "struct":
            return self.read_struct(depth)
        raise self.unknown(word)

    def read_decimal(self) -> Decimal:
        self.take("(", "decimal")
        precision = self.take_number()
        self.take(",", "decimal")
        scale = self.take_number()
        self.take(")", "decimal")
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise self.problem(
                f"asks for decimal({precision},{scale})",
                f"precision goes from 1 to {MAX_PRECISION} and scale from 0 to the precision, such as decimal(18,2)",
            )
        return Decimal(precision, scale)

    def read_map(self, depth: int) -> MapOf:
        self.take("<", "map")
        key = self.take_word("the key type")
        if key != "string":
            raise self.problem(f"has map keys of type {key!r}", "map keys are strings: map<string,T>")
        self.take(",", "map")
        value = self.read_type(depth + 1)
        self.take(">", "map")
        return MapOf(value)

    def read_struct(self, depth: int) -> StructOf:
        self.take("<", "struct")
        fields: list[tuple[str, TypeTree]] = []
        while True:
            name = self.take_word("a field name")
            if not FIELD_NAME.fullmatch(name):
                raise self.problem(f"names a field {name!r}", "field names are lower-case letters, digits and _")
            if name in dict(fields):
                raise self.problem(f"names the field {name!r} twice", "give each field of a struct its own name")
            self.take(":", "struct")
            fields.append((name, self.read_type(depth + 1)))
            if self.peek() != ",":
                break
            self.at += 1
        self.take(">", "struct")
        return StructOf(tuple(fields))

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, sign: str, inside: str) -> None:
        found = self.peek()
        if found != sign:
            form = OTHER_NAMES[inside]
            seen = "it ends" if found is None else f"there is {found[:60]!r}"
            raise self.problem(f"{seen} where {sign!r} belongs", f"write {form}")
        self.at += 1

    def take_word(self, what: str) -> str:
        found = self.peek()
        if found is None or not (found[0].isalpha() or found[0] == "_"):
            seen = "it ends" if found is None else f"there is {found[:60]!r}"
            raise self.problem(f"{seen} where {what} belongs", f"types are {', '.join(FORMS)}")
        self.at += 1
        return found

    def take_number(self) -> int:
        found = self.peek()
        if found is None or not found.isdigit() or len(found) > 3:
            seen = "it ends" if found is None else f"there is {found[:60]!r}"
            raise self.problem(f"{seen} where a whole number belongs", "write decimal(P,S), such as decimal(18,2)")
        self.at += 1
        return int(found)

    def expect_end(self) -> None:
        found = self.peek()
        if found is not None:
            raise self.problem(f"goes on with {found[:60]!r} after a whole type", "write one type")

    def problem(self, wrong: str, right: str) -> TypeProblem:
        return TypeProblem(f"type {self.text[:200]!r}: {wrong}", right)

    def unknown(self, word: str) -> TypeProblem:
        near = OTHER_NAMES.get(word.lower()) or next(
            iter(difflib.get_close_matches(word.lower(), (*SCALARS, *OTHER_NAMES), 1)), None
        )
        if near is not None:
            near = OTHER_NAMES.get(near, near)
            return self.problem(f"{word[:60]!r} is no type", f"did you mean {near}?")
        return self.problem(f"{word[:60]!r} is no type", f"types are {', '.join(FORMS)}")


def _split_tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if match is None:
            raise TypeProblem(
                f"type {text[:200]!r}: {text[at:].strip()[0]!r} belongs to no type", f"types are {', '.join(FORMS)}"
            )
        tokens.append(match.group(0).strip())
        at = match.end()
    return tokens
