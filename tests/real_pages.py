"""Real pages with hand-made answers, served from this machine and declared as sources.

The pages belong to their publishers and are no part of the project: they lie in the folder that LAKEHOUSE_REAL_PAGES
names, by default `../shared/pages`. English pages are served under their own host and path, Chinese ones under their
`file`. One source a host, no templates: what is measured is the generic extraction, through the whole main job.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
import yaml

from infra.demo_site.reply import Reply, html_reply
from infra.demo_site.server import run_site

ROOT = Path(__file__).parent.parent
LANGUAGES = ("en", "zh")
ZONES = {"en": "UTC", "zh": "Asia/Shanghai"}
given_folder = os.environ.get("LAKEHOUSE_REAL_PAGES")


@dataclass(frozen=True, slots=True)
class RealPage:
    """One page: `file` as in the answers, `route` its path on the local server, `source` the source it belongs to."""

    language: str
    file: str
    source: str
    route: str


class RealSite:
    """Answers with the stored pages, still gzip as they lie there, and with one list page a source."""

    def __init__(self, folder: Path, pages: Iterable[RealPage]) -> None:
        self._folder = folder
        self._pages = {page.route: page for page in pages}
        self._lists = {f"/{source}/": found for source, found in by_source(self._pages.values()).items()}

    def reply(self, target: str, *, counts: bool = True) -> Reply:
        """A page, a list of pages, or 404."""
        path = urlsplit(target).path
        if path in self._lists:
            links = "".join(
                f'<li><a class="page" href="{escape(p.route)}">{p.file}</a></li>' for p in self._lists[path]
            )
            return html_reply(f"<html><head><title>{path}</title></head><body><ul>{links}</ul></body></html>")
        page = self._pages.get(path)
        if page is None:
            return Reply(b"not here\n", 404, "text/plain")
        body = (self._folder / page.language / page.file).read_bytes()
        return Reply(body, media_type="text/html", headers=(("Content-Encoding", "gzip"),))

    def reset(self) -> None:
        """Real pages remember nothing."""


def require_folder() -> Path:
    """The folder of the real pages; skips the test where there is none, and fails where CI is set."""
    folder = Path(given_folder) if given_folder else ROOT.parent / "shared" / "pages"
    if not (folder / "score.py").is_file():
        reason = f"no real pages in {folder}; set LAKEHOUSE_REAL_PAGES to the folder that holds score.py, en/ and zh/"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


def read_pages(folder: Path) -> tuple[RealPage, ...]:
    """All pages that have an answer, English first."""
    return tuple(
        _page(language, json.loads(line))
        for language in LANGUAGES
        for line in (folder / language / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    )


def by_source(pages: Iterable[RealPage]) -> dict[str, list[RealPage]]:
    """Pages grouped by source, in order of appearance."""
    grouped: dict[str, list[RealPage]] = {}
    for page in pages:
        grouped.setdefault(page.source, []).append(page)
    return grouped


@contextmanager
def serve_pages(folder: Path, pages: Iterable[RealPage]) -> Iterator[str]:
    """The address of a local server with these pages, for as long as the block runs."""
    with run_site(RealSite(folder, pages)) as server:
        yield server.url


def write_catalog(target: Path, address: str, pages: Iterable[RealPage]) -> Path:
    """A catalog in the new folder `target`: the project's schemas, checks and URL rules, and the real sources only."""
    for name in ("schemas", "checks", "templates"):
        shutil.copytree(ROOT / "catalog" / name, target / name)
    shutil.copy(ROOT / "catalog" / "url_rules.yaml", target)
    (target / "sources").mkdir()
    for source, found in by_source(pages).items():
        declared = declare_source(source, address, found[0].language)
        text = yaml.safe_dump(declared, allow_unicode=True, sort_keys=False)
        (target / "sources" / f"{source}.yaml").write_text(text, encoding="utf-8")
    return target


def declare_source(source: str, address: str, language: str) -> dict[str, Any]:
    """The declaration of one real source."""
    entry = f"{address}/{source}/"
    return {
        "source": source,
        "name": source.removeprefix("real_"),
        "entry_url": entry,
        "allow_private": True,
        "language": language,
        "page_tz": ZONES[language],
        "limits": {"interval": 0, "attempts": 2, "backoff": [0.2]},
        "tasks": [{"name": "all", "url": entry, "cron": "0 0 * * *", "list": {"links": "a.page"}}],
    }


def predict(rows: Iterable[Mapping[str, Any]], pages: Iterable[RealPage]) -> dict[str, list[dict[str, Any]]]:
    """Predictions by language from rows of `clean.articles`, or from the `row` of rejects in review.

    `publish_time` becomes local time of the source's zone, without offset.
    """
    routes = {page.route: page for page in pages}
    found: dict[str, list[dict[str, Any]]] = {language: [] for language in LANGUAGES}
    for row in rows:
        page = routes[urlsplit(row["url"]).path]
        found[page.language].append(
            {
                "file": page.file,
                "title": row.get("title"),
                "publish_time": _local(row.get("publish_time"), ZONES[page.language]),
                "author": row.get("author"),
                "body": row.get("body"),
            }
        )
    return found


def score(folder: Path, language: str, predictions: Iterable[Mapping[str, Any]], work: Path) -> dict[str, Any]:
    """What the scorer beside the answers says of these predictions; `work` takes the predictions file."""
    file = work / f"predictions-{language}.jsonl"
    file.write_text("".join(json.dumps(p, ensure_ascii=False) + "\n" for p in predictions), encoding="utf-8")
    command = [sys.executable, str(folder / "score.py"), language, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    scores: dict[str, Any] = json.loads(done.stdout)
    return scores


def _page(language: str, answer: Mapping[str, Any]) -> RealPage:
    file = str(answer["file"])
    if language == "zh":
        site, route = file.split("/", maxsplit=1)[0], "/zh/" + file.removesuffix(".gz")
    else:
        url = urlsplit(str(answer["url"]))
        site, route = url.netloc.removeprefix("www."), f"/{url.netloc}{url.path}"
    name = re.sub(r"[^a-z0-9]+", "_", site.lower()).strip("_")
    return RealPage(language, file, f"real_{language}_{name}"[:64], route)


def _local(moment: datetime | str | None, zone: str) -> str | None:
    if moment is None:
        return None
    parsed = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return aware.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat()
