"""Which files `catalog/` holds, and what their names say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import Problem
from lakehouse.specs.base import near_names

SOURCES, TEMPLATES, SCHEMAS, CHECKS = "sources", "templates", "schemas", "checks"
FOLDERS = (SOURCES, TEMPLATES, SCHEMAS, CHECKS)
URL_RULES = "url_rules.yaml"
CODE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
VERSION_FILE = re.compile(r"v([1-9][0-9]{0,5})\.yaml")
FORMS = {
    SOURCES: "sources/<name>.yaml",
    TEMPLATES: "templates/<name>/v<number>.yaml",
    SCHEMAS: "schemas/<dataset>/v<number>.yaml",
    CHECKS: "checks/<name>.yaml",
}


@dataclass(frozen=True, slots=True, order=True)
class DeclaredFile:
    """One file by its place: `version` is 0 for kinds without versions."""

    folder: str
    name: str
    version: int
    path: Path
    file: str


def find_files(root: Path) -> tuple[list[DeclaredFile], list[Problem]]:
    """All declared files below `root`, sorted, and a problem for each file that nothing would read."""
    found: list[DeclaredFile] = []
    problems: list[Problem] = []
    for path in sorted(root.iterdir()):
        if _is_beside(path) or path.name == URL_RULES:
            continue
        if path.name not in FOLDERS or not path.is_dir():
            hint = near_names(path.name, (*FOLDERS, URL_RULES), "its parts")
            problems.append(Problem(_printable(f"{root.name}/{path.name}"), "", "is not a part of the catalog", hint))
            continue
        for inner, parts in _files_below(path):
            file = _printable(f"{root.name}/{path.name}/{'/'.join(parts)}")
            declared = _declared(path.name, parts, inner, file)
            if declared is None:
                right = f"name it {FORMS[path.name]}, names in lower-case letters, digits and _"
                problems.append(Problem(file, "", "is not where a declared file belongs", right))
            else:
                found.append(declared)
    return sorted(found), problems + _version_gaps(root, found)


def _printable(file: str) -> str:
    """A file name that any terminal can show; names need not be UTF-8."""
    text = file.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _is_beside(path: Path) -> bool:
    """Whether a path is no declaration on purpose: hidden, or a note for people."""
    return path.name.startswith(".") or path.suffix == ".md"


def _files_below(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every file in a folder and its folders, sorted, with the names that lead to it."""
    for path in sorted(folder.iterdir()):
        if _is_beside(path):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from ((inner, (path.name, *parts)) for inner, parts in _files_below(path))
        else:
            yield path, (path.name,)


def _declared(folder: str, parts: tuple[str, ...], path: Path, file: str) -> DeclaredFile | None:
    if folder in {SOURCES, CHECKS}:
        name, _, suffix = parts[0].partition(".")
        fits = len(parts) == 1 and suffix == "yaml" and CODE_NAME.fullmatch(name)
        return DeclaredFile(folder, name, 0, path, file) if fits else None
    match = VERSION_FILE.fullmatch(parts[-1])
    if match and len(parts) == 2 and CODE_NAME.fullmatch(parts[0]):
        return DeclaredFile(folder, parts[0], int(match[1]), path, file)
    return None


def _version_gaps(root: Path, found: list[DeclaredFile]) -> list[Problem]:
    versions: dict[str, set[int]] = {}
    for file in found:
        if file.version:
            versions.setdefault(f"{root.name}/{file.folder}/{file.name}", set()).add(file.version)
    problems = []
    for place, numbers in versions.items():
        missing = sorted(set(range(1, min(max(numbers), 1000))) - numbers)
        if missing:
            shown = ", ".join(f"v{number}" for number in missing[:5]) + (" and more" if len(missing) > 5 else "")
            wrong = f"has v{max(numbers)} but not {shown}"
            problems.append(Problem(place, "", wrong, "versions count up from 1 and stay: rows refer to them"))
    return problems
