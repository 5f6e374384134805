"""A source and its tasks: `catalog/sources/<name>.yaml`."""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from lakehouse.model.partition import Layer
from lakehouse.specs.base import CodeName, Declared, Misfit, VersionRef
from lakehouse.specs.notations import (
    checked_charset,
    checked_cron,
    checked_css,
    checked_host,
    checked_regex,
    checked_zone,
)

Css = Annotated[str, AfterValidator(checked_css)]
Regex = Annotated[str, AfterValidator(checked_regex)]
HostName = Annotated[str, AfterValidator(checked_host)]
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}(s|m|h|d)$")]

Days = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}d$")]


class Fetcher(StrEnum):
    """Which client fetches details and lists."""

    HTTP = "http"
    BROWSER = "browser"


class SourceStatus(StrEnum):
    """The declared status; what a run found out lives in the ledger."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class ListRules(Declared):
    """How a list page gives entries.

    Either `links` (a CSS selector of anchors) or `url_pattern` (a regex over absolute URLs), or both: then both must
    hold. `item` and `fields` (CSS selectors below the item) record what the list says of an entry.
    """

    links: Css | None = None
    url_pattern: Regex | None = None
    item: Css | None = None
    fields: dict[CodeName, Css] = Field(default_factory=dict)
    wait_for: Css | None = Field(default=None, description="CSS selector a browser waits for")

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if self.links is None and self.url_pattern is None:
            raise Misfit(
                "nothing says which links are entries", "give `links` (a CSS selector) or `url_pattern` (a regex)"
            )
        if self.fields and self.item is None:
            raise Misfit("`fields` are selectors below an item", "give `item` as well", ("fields",))
        return self


class Paging(Declared):
    """How a list goes on: `next` (CSS selector of the link), or a `{page}` placeholder in the task's URL."""

    next: Css | None = None
    first: int = Field(default=1, ge=0)
    max_pages: int | None = Field(default=None, gt=0)


class TaskSpec(Declared):
    """One way and rhythm of collecting a source: `cron` (batch) or `interval` (stream).

    `url` may hold `{page}` and, for a source addressed by date, `{dt}`, `{yyyy}`, `{mm}`, `{dd}`.
    `take_known` also fetches details that this source already has (a re-pull).
    """

    name: CodeName
    url: str
    cron: Annotated[str, AfterValidator(checked_cron)] | None = None
    interval: Duration | None = None
    paging: Paging | None = None
    list: ListRules | None = None
    take_known: bool = False

    @model_validator(mode="after")
    def _one_rhythm(self) -> Self:
        if self.cron is None and self.interval is None:
            raise Misfit("nothing says when the task is due", "give `cron` (batch) or `interval` (stream)")
        if self.cron is not None and self.interval is not None:
            raise Misfit(
                "`cron` and `interval` are both given", "keep `cron` for a batch task, `interval` for a stream"
            )
        return self


class Limits(Declared):
    """Politeness and patience of one source; times in seconds."""

    interval: float = Field(default=1.0, ge=0, le=3600, description="pause between two requests to one domain")
    connect_timeout: float = Field(default=10.0, gt=0, le=300)
    read_timeout: float = Field(default=30.0, gt=0, le=600)
    total_timeout: float = Field(default=90.0, gt=0, le=3600)
    attempts: int = Field(default=3, ge=1, le=10)
    backoff: tuple[Annotated[float, Field(ge=0, le=3600)], ...] = Field(
        default=(2.0, 8.0), description="seconds to wait before each further attempt"
    )
    max_body_bytes: int | None = Field(default=None, gt=0)
    max_redirects: int = Field(default=5, ge=0, le=20)


class LimitedSignature(Declared):
    """A page that says "slow down" with status 200: `when` is a regex searched in the decoded page."""

    reason: CodeName
    when: Regex


class Retention(Declared):
    """How long a source's days stay, by layer, such as `400d`; for ever where nothing is said.

    Pages and uploaded batches in the object store are not part of it: they follow the bucket's own rules.
    """

    raw: Days | None = None
    clean: Days | None = None
    feature: Days | None = None

    def first_day(self, layer: Layer, today: date) -> date | None:
        """The oldest day that `layer` keeps; None where it keeps all."""
        kept = {Layer.RAW: self.raw, Layer.CLEAN: self.clean, Layer.FEATURE: self.feature}.get(layer)
        return None if kept is None else today - timedelta(days=int(kept.removesuffix("d")))


class SourceSpec(Declared):
    """One place we collect from."""

    source: CodeName
    name: str = Field(min_length=1)
    type: str = Field(default="website", pattern="^(website|column|keyword|account|blogger|other)$")
    status: SourceStatus = SourceStatus.ENABLED
    entry_url: str
    allowed_hosts: tuple[HostName, ...] = Field(
        default=(), description="hosts that may be reached, each with its subdomains; all by default"
    )
    allow_private: bool = Field(default=False, description="let this source reach private and loopback addresses")
    robots: bool = True
    fetcher: Fetcher = Fetcher.HTTP
    charset: Annotated[str, AfterValidator(checked_charset)] | None = None
    language: str | None = Field(default=None, pattern="^[a-z]{2}$")
    page_tz: Annotated[str, AfterValidator(checked_zone)] | None = Field(
        default=None, description="zone of times shown on pages; the business zone by default"
    )
    writes: VersionRef = Field(default="articles@1", description="dataset and schema version, such as articles@1")
    template: VersionRef | None = Field(default=None, description="no template means generic article extraction")
    checks: CodeName = "default"
    by_date: bool = Field(default=False, description="addressed by date: the day asked for is the day collected")
    priority: int = Field(default=5, ge=1, le=9)
    tags: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    limits: Limits = Limits()
    limited: tuple[LimitedSignature, ...] = ()
    retention: Retention = Retention()
    secret_params: tuple[str, ...] = Field(default=(), description="URL parameters blanked in everything stored")
    tasks: tuple[TaskSpec, ...] = Field(min_length=1)

    @field_validator("tasks")
    @classmethod
    def _names_differ(cls, value: tuple[TaskSpec, ...]) -> tuple[TaskSpec, ...]:
        names = [task.name for task in value]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise Misfit(
                    f"{name!r} is already the name of tasks[{names.index(name)}]", "name each once", (at, "name")
                )
        return value
