"""What list pages said of a page, from the rows of `raw.entries`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def entry_words(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """By `url_fp`, what the lists said; where several lists name a page, the earliest that says a thing is believed."""
    words: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: (row["collect_time"], row["page_no"], row["position"])):
        said = words.setdefault(row["url_fp"], {})
        for name, value in json.loads(row["entry"] or "{}").items():
            if value:
                said.setdefault(name, value)
    return words
