"""A copy of the catalog whose demo sources lead to a demo site on another port."""

from __future__ import annotations

import shutil
from pathlib import Path

from infra.demo_site.server import DEFAULT_PORT


def copy_catalog(root: Path, target: Path, port: int) -> Path:
    """Copy `root` to the new folder `target`, the demo site's port replaced by `port`; gives `target`."""
    shutil.copytree(root, target)
    for file in sorted((target / "sources").glob("demo_*.yaml")):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(f"127.0.0.1:{DEFAULT_PORT}", f"127.0.0.1:{port}"), encoding="utf-8")
    return target
