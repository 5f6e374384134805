"""`lakehouse extract`: the parser of the pipeline on page files, without a lake."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from lakehouse.cli.output import print_json
from lakehouse.clock import Clock
from lakehouse.errors import SettingError
from lakehouse.model.record import Page, Parsed
from lakehouse.parse import GENERIC_VERSION, decode_page, judge_template, parse_page
from lakehouse.settings import load_settings
from lakehouse.specs.template import TemplateSpec

GZIP = b"\x1f\x8b"
PARALLEL_FROM = 40
CHUNK = 16
FIELDS = ("title", "publish_time", "time_confidence", "author", "origin", "body")
SHOWN = 300


@dataclass(frozen=True, slots=True)
class Job:
    """How files are parsed; crosses to worker processes."""

    url: str
    template: TemplateSpec | None
    zone: ZoneInfo
    collected: datetime | None
    charset: str | None
    max_bytes: int

    @property
    def template_name(self) -> str:
        """The template as the lines name it."""
        return self.template.ref if self.template else f"generic@{GENERIC_VERSION}"


@click.command("extract", help="Parse page files (.gz too) and print what they say, one JSON line a page with --json.")
@click.argument("pages", nargs=-1, required=True)
@click.option("--url", default="", help="URL that the page came from")
@click.option("--template", "ref", help="template such as news@3; without one, generic article extraction")
@click.option("--zone", help="zone of times shown without one; the business zone by default")
@click.option("--collected-at", help="when the page was fetched (ISO 8601); lets `3 hours ago` be told")
@click.option("--charset", help="the charset that the source declares")
@click.option("--json", "as_json", is_flag=True, help="print one JSON line a page")
def command(
    pages: Sequence[str],
    *,
    url: str,
    ref: str | None,
    zone: str | None,
    collected_at: str | None,
    charset: str | None,
    as_json: bool,
) -> None:
    """Exits 0 when every page has its line, also where the line names a problem."""
    settings = load_settings()
    template = _template(settings.catalog_dir, ref) if ref else None
    clock = Clock.in_zone(zone) if zone else settings.clock
    collected = _moment(collected_at, clock.zone) if collected_at else None
    job = Job(url, template, clock.zone, collected, charset, 4 * settings.max_body_bytes)
    for line in extract_lines(pages, job):
        if as_json:
            print_json(line, line=True)
        else:
            _print_page(line)


def _template(folder: Path, ref: str) -> TemplateSpec:
    from lakehouse.specs.loader import load_catalog

    return load_catalog(folder, judge_template).template(ref)


def _moment(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingError(f"--collected-at {text!r} is not a time; write it as 2024-03-05T08:30:00+08:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def extract_lines(files: Sequence[str], job: Job, processes: int | None = None) -> Iterator[dict[str, Any]]:
    """One line a file, in order; over several processes where there are many files."""
    workers = min(processes or os.cpu_count() or 1, len(files) // CHUNK)
    if len(files) < PARALLEL_FROM or workers < 2:
        yield from (extract_file(file, job) for file in files)
        return
    chunks = [list(files[start : start + CHUNK]) for start in range(0, len(files), CHUNK)]
    done = 0
    try:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for lines in pool.map(extract_files, chunks, [job] * len(chunks)):
                yield from lines
                done += 1
    except BrokenProcessPool:
        yield from (_extract_alone(file, job) for chunk in chunks[done:] for file in chunk)


def extract_files(files: Sequence[str], job: Job) -> list[dict[str, Any]]:
    """Lines of several files; runs in a worker process."""
    return [extract_file(file, job) for file in files]


def _extract_alone(file: str, job: Job) -> dict[str, Any]:
    """The line of a file parsed in a process of its own, which may die without taking others along."""
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(extract_file, file, job).result()
    except BrokenProcessPool:
        return _line(file, job, Parsed({}, {}, job.template_name, 0, "parser_limit", "the parser's process died"), None)


def extract_file(file: str, job: Job) -> dict[str, Any]:
    """The line of one file; a file that cannot be read gives `problem` and `detail`."""
    try:
        body = _read(Path(file), job.max_bytes)
    except FileNotFoundError:
        return _line(file, job, Parsed({}, {}, job.template_name, 0, "snapshot_missing", "there is no such file"), None)
    except OSError as error:
        detail = error.strerror or str(error)
        return _line(file, job, Parsed({}, {}, job.template_name, 0, "unreadable", detail), None)
    except (zlib.error, EOFError, ValueError) as error:
        return _line(file, job, Parsed({}, {}, job.template_name, 0, "snapshot_corrupt", str(error)), None)
    page = Page(body, job.url, job.collected or datetime.now(UTC), job.charset)
    parsed = parse_page(page, job.template, zone=job.zone, relative_times=job.collected is not None)
    charset = decode_page(body, None, job.charset)[1] if parsed.problem not in {"not_html", "empty_body"} else None
    return _line(file, job, parsed, charset)


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a file, decompressed; raises ValueError for more than `limit` bytes."""
    data = path.read_bytes()
    if data.startswith(GZIP):
        data = _gunzip(data, limit)
    if len(data) > limit:
        raise ValueError(f"the page has more than {limit} bytes")
    return data


def _gunzip(data: bytes, limit: int) -> bytes:
    """All members of a gzip file; raises zlib.error or EOFError for a broken one."""
    parts: list[bytes] = []
    while data.startswith(GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        parts.append(unpacker.decompress(data, limit + 1))
        if sum(map(len, parts)) > limit:
            break
        if not unpacker.eof:
            raise EOFError("the gzip file is cut")
        data = unpacker.unused_data
    return b"".join(parts)


def _line(file: str, job: Job, parsed: Parsed, charset: str | None) -> dict[str, Any]:
    """What is printed of a page; `publish_time` in the clock that the page shows."""
    values = {name: parsed.values.get(name) for name in FIELDS} | dict(parsed.values)
    return {
        "file": file,
        "url": job.url or None,
        **{name: _shown(value) for name, value in values.items()},
        "time_confidence": int(values["time_confidence"] or 0),
        "template": parsed.template,
        "charset": charset,
        "problem": parsed.problem,
        "detail": parsed.detail,
    }


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return int(value) if isinstance(value, IntEnum) else value


def _print_page(line: dict[str, Any]) -> None:
    click.secho(line["file"], bold=True)
    for name, value in line.items():
        if name != "file" and value is not None:
            text = str(value).replace("\n", "\n" + " " * 17)
            click.echo(f"  {name:<15}{text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
