"""New versions of declared files, begun as copies of the newest."""

from __future__ import annotations

import json
import re
from pathlib import Path

from lakehouse.errors import ConfigError, UnknownNameError
from lakehouse.specs.base import near_names
from lakehouse.specs.layout import SCHEMAS, VERSION_FILE


def draft_version(root: Path, dataset: str, *, changes: str, reviewed_by: str) -> Path:
    """Write `schemas/<dataset>/v<next>.yaml`, the newest version with other words, and return where it is.

    Raises UnknownNameError for a dataset that is not there, ConfigError where the file appeared meanwhile.
    """
    folder = root / SCHEMAS / dataset
    versions = {int(found[1]): path for path in folder.glob("v*.yaml") if (found := VERSION_FILE.fullmatch(path.name))}
    if not versions:
        known = [path.name for path in (root / SCHEMAS).glob("*") if path.is_dir()]
        raise UnknownNameError(f"there is no dataset {dataset!r} in {root}; {near_names(dataset, known, 'datasets')}")
    newest = max(versions)
    text = versions[newest].read_text(encoding="utf-8")
    words = {"version": str(newest + 1), "changes": _text(changes), "reviewed_by": _text(reviewed_by)}
    for key, value in words.items():
        # Also what stands below the key, for text that was written over several lines.
        line = f"{key}: {value}\n".replace("\\", r"\\")
        text = re.sub(rf"^{key}:.*\n(?:[ \t]+.*\n)*", line, text, flags=re.MULTILINE)
    path = folder / f"v{newest + 1}.yaml"
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} was written meanwhile; look at it, then run again") from None
    return path


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
