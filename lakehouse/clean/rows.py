"""A parsed page as a row of `clean.<dataset>`, and a row as a reject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntEnum
from typing import Any

from lakehouse.clean.dedup import content_hash
from lakehouse.clean.language import language_of
from lakehouse.clean.quality import body_quality, count_chars, count_paragraphs
from lakehouse.clean.text import clean_value
from lakehouse.model.record import Action, Parsed, Reject
from lakehouse.specs.checks import UrlRules
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.urls import canonical_fp

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes the rows of one source, day and schema version."""

    source: SourceSpec
    dt: date
    schema_version: int
    url_rules: UrlRules

    def row_of(self, fetch: Row, parsed: Parsed) -> dict[str, Any]:
        """The whole row of a parsed page, before the checks: values in normal form, times in UTC."""
        values = {name: _stored(clean_value(name, value)) for name, value in parsed.values.items()}
        hashed = content_hash(values)
        if "body" in values:
            values |= self._body_facts(values)
        return {
            "source": self.source.source,
            "dt": self.dt,
            "schema_version": self.schema_version,
            "canonical_fp": self._canonical(fetch),
            "url_rules_version": self.url_rules.version,
            "content_hash": hashed,
            **values,
            "tags": sorted(set(self.source.tags)),
            "flags": [],
            **evidence_of(fetch, parsed),
        }

    def _canonical(self, fetch: Row) -> str:
        """The fingerprint of the canonical form; a URL too odd to have one is its own page."""
        try:
            return canonical_fp(fetch["url"], self.url_rules)
        except ValueError:
            return str(fetch["url_fp"])

    def _body_facts(self, values: Row) -> dict[str, Any]:
        body = values["body"]
        return {
            "body_chars": count_chars(body),
            "body_quality": body_quality(body),
            "paragraphs": count_paragraphs(body),
            "language": language_of(f"{values.get('title') or ''}\n{body or ''}") or self.source.language,
        }


def evidence_of(fetch: Row, parsed: Parsed) -> dict[str, Any]:
    """The columns that lead a row home: page, fetch, task, template."""
    return {
        "url": fetch["url"],
        "url_fp": fetch["url_fp"],
        "fetch_id": fetch["fetch_id"],
        "task_id": fetch["task_id"],
        "template": parsed.template,
        "template_version": parsed.template_version,
        "collect_time": fetch["collect_time"],
        "snap_key": fetch.get("snap_key"),
    }


def reject_of(row: Row, stage: str, action: Action, reason: str, detail: str) -> Reject:
    """The reject of a row, with its values ready for JSON."""
    return Reject(
        stage=stage,
        action=action,
        reason=reason,
        detail=detail,
        row={name: _json_ready(value) for name, value in row.items()},
        fetch_id=row["fetch_id"],
        url_fp=row["url_fp"],
        task_id=row["task_id"],
        template=row["template"],
        template_version=row["template_version"],
        collect_time=row["collect_time"],
        snap_key=row["snap_key"],
    )


def _stored(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC)
    return int(value) if isinstance(value, IntEnum) else value


def _json_ready(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_json_ready(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _json_ready(item) for name, item in value.items()}
    if isinstance(value, IntEnum):
        return int(value)
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
