"""Structured logs: every line carries its time with offset and what was bound (source, task, worker, run).

Secrets never reach a line: values under telling key names are blanked, and so are credentials inside URLs.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from lakehouse.clock import Clock

BLANK = "***"
SECRET_KEY = re.compile(
    r"(password|passwd|secret|token|authorization|cookie|api[-_]?key|access[-_]?key|credential|session)", re.IGNORECASE
)
URL_CREDENTIALS = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@:]*:[^\s/@]*@")
URL_PARAMETER = re.compile(
    r"(?P<name>[?&](?:token|sign|signature|secret|password|api[-_]?key|access[-_]?key|x-amz-[a-z-]+)=)[^&#\s]+",
    re.IGNORECASE,
)


def blank_secrets(text: str) -> str:
    """`text` with user and password inside URLs and telling URL parameters blanked."""
    return URL_PARAMETER.sub(rf"\g<name>{BLANK}", URL_CREDENTIALS.sub(rf"\g<scheme>{BLANK}@", text))


def _blank(value: Any, key: str = "") -> Any:
    if key and SECRET_KEY.search(key) and value is not None:
        return BLANK
    if isinstance(value, str):
        return blank_secrets(value)
    if isinstance(value, dict):
        return {k: _blank(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_blank(v) for v in value]
    return value


def _blank_event(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: _blank(value, key) for key, value in event.items()}


def configure_logs(clock: Clock, style: str = "console", level: str = "INFO") -> None:
    """Send logs to standard error as `console` lines or one JSON object a line."""

    def stamp(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["at"] = clock.now().isoformat(timespec="milliseconds")
        return event

    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if style == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            _blank_event,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_log(**bound: Any) -> Any:
    """A logger that carries `bound` (source, task, worker, run, …) on every line."""
    return structlog.get_logger(**bound)
