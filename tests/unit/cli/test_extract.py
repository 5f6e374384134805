"""`lakehouse extract` from the outside: one line a page, whatever the page is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lakehouse.cli import main
from lakehouse.cli.extract import PARALLEL_FROM

TEXT = "河上的老桥今天重新开放，数百名居民一早就来到桥头，等着走过去看看对岸的变化。"
PAGE = (
    f"<meta charset=gb2312><title>老桥</title><h1>老桥重新开放</h1><p>3小时前 来源：晚报</p><p>{TEXT}</p><p>{TEXT}</p>"
)
CATALOG = Path(__file__).parents[3] / "catalog"


def lines(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["extract", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = tmp_path / "page.html.gz"
    path.write_bytes(gzip.compress(PAGE.encode("gbk")))
    return str(path)


def test_a_page_gives_its_line(page: str) -> None:
    (line,) = lines(page, "--url", "http://paper.example/1")
    assert line["file"] == page
    assert (line["url"], line["title"], line["origin"]) == ("http://paper.example/1", "老桥重新开放", "晚报")
    assert (line["body"], line["charset"]) == (f"{TEXT}\n{TEXT}", "gb18030")
    assert (line["template"], line["problem"], line["detail"]) == ("generic@1", None, None)
    assert (line["publish_time"], line["time_confidence"]) == (None, 0)


def test_a_relative_time_is_told_from_the_given_fetch_alone(page: str) -> None:
    (line,) = lines(page, "--collected-at", "2024-03-06T12:00")
    assert (line["publish_time"], line["time_confidence"]) == ("2024-03-06T09:00:00", 1)


def test_times_are_printed_in_the_clock_that_the_page_shows(tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    stated = '<meta property="article:published_time" content="2024-03-05T08:30:00-05:00">'
    path.write_text(f"{stated}<h1>A title</h1><p>Words, and more words, to be read.</p>")
    (line,) = lines(str(path), "--zone", "Asia/Tokyo")
    assert line["publish_time"] == "2024-03-05T08:30:00"


def test_what_cannot_be_read_still_has_its_line(tmp_path: Path, page: str) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(Path(page).read_bytes()[:-20])
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b" + b"nonsense" * 9)
    empty = tmp_path / "empty.html"
    empty.write_bytes(b"")
    pdf = tmp_path / "x.pdf"
    pdf.write_bytes(b"%PDF-1.4")
    given = [str(tmp_path / "none"), str(tmp_path), str(cut), str(broken), str(empty), str(pdf), page]
    found = lines(*given)
    assert [line["file"] for line in found] == given
    problems = [line["problem"] for line in found]
    assert problems == [
        "snapshot_missing",
        "unreadable",
        "snapshot_corrupt",
        "snapshot_corrupt",
        "empty_body",
        "not_html",
        None,
    ]
    assert all(line["detail"] for line in found[:-1])


def test_a_template_of_the_catalog_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(CATALOG))
    path = tmp_path / "p.html"
    path.write_text(
        '<div id="app"><h1 class="t">题目</h1><div class="text"><p>正文。</p></div></div>', encoding="utf-8"
    )
    (line,) = lines(str(path), "--template", "demo_js@1")
    assert (line["title"], line["body"], line["template"]) == ("题目", "正文。", "demo_js@1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--template", "demo_jss@1"], "demo_js@1"),
        (["--zone", "Mars/Base"], "Mars/Base"),
        (["--collected-at", "yesterday"], "2024-03-05T08:30:00+08:00"),
    ],
)
def test_a_wrong_option_stops_before_any_page(
    page: str, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(CATALOG))
    result = CliRunner().invoke(main, ["extract", page, *arguments, "--json"])
    assert result.exit_code == 2
    assert message in result.output


def test_many_pages_keep_their_order_over_processes(page: str, tmp_path: Path) -> None:
    files = []
    for number in range(PARALLEL_FROM):
        path = tmp_path / f"{number}.html"
        path.write_text(f"<title>标题{number}号</title><p>{TEXT}</p>", encoding="utf-8")
        files.append(str(path))
    assert [line["title"] for line in lines(*files)] == [f"标题{number}号" for number in range(PARALLEL_FROM)]


def test_people_get_text(page: str) -> None:
    result = CliRunner().invoke(main, ["extract", page])
    assert result.exit_code == 0
    assert "老桥重新开放" in result.output
    assert "{" not in result.output
