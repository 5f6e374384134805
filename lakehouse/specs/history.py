"""What git knows of the files in `catalog/`: the commit that brought one, and other branches that claim its number."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from lakehouse.errors import Problem
from lakehouse.specs.layout import SCHEMAS, TEMPLATES

PATIENCE_S = 20


def commit_of(path: Path) -> str | None:
    """The commit that brought a file as it is now; None where it is not committed, or git does not know it."""
    if _git(path.parent, "status", "--porcelain", "--", path.name) != "":
        return None
    return _git(path.parent, "log", "-1", "--format=%H", "--", path.name) or None


def rival_claims(root: Path) -> list[Problem]:
    """Version files of `catalog/` that a branch not merged here has too, with other content.

    Nothing is found where the folder is in no git checkout.
    """
    ours = _tree(root, "HEAD")
    problems = []
    for branch in _unmerged_branches(root):
        for file, blob in _tree(root, branch).items():
            if file in ours and ours[file] != blob:
                name = branch.removeprefix("refs/").partition("/")[2]
                wrong = f"branch {name} claims this version with other content"
                right = "rows can be written under one of them only: give the later one the next number"
                problems.append(Problem(f"{root.name}/{file}", "", wrong, right))
    return problems


def _unmerged_branches(root: Path) -> Iterator[str]:
    refs = _git(root, "for-each-ref", "--no-merged=HEAD", "--format=%(refname)", "refs/heads", "refs/remotes")
    yield from (refs or "").splitlines()


def _tree(root: Path, ref: str) -> Mapping[str, str]:
    """Version files below `root` in a commit, by path, with the id of their content."""
    lines = (_git(root, "ls-tree", "-r", ref, "--", SCHEMAS, TEMPLATES) or "").splitlines()
    entries = (line.partition("\t") for line in lines)
    return {file: entry.split()[2] for entry, _, file in entries}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, None where it can't."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
