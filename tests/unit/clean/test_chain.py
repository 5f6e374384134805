"""Cleaning a day: rows, rejects, outcomes; the books balance and order is nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.clean import FetchedPage, clean_day
from lakehouse.model.record import REJECT_REASONS, Action, CleanDay, Outcome, TimeConfidence
from lakehouse.specs.checks import ChecksSpec, UrlRules
from lakehouse.specs.source import SourceSpec

DAY = date(2024, 3, 6)
MakePage = Callable[..., FetchedPage]
Clean = Callable[[Sequence[FetchedPage]], CleanDay]


@pytest.fixture(scope="session")
def clean(source: SourceSpec, checks: ChecksSpec, rules: UrlRules) -> Clean:
    return lambda pages: clean_day(source, DAY, pages, checks, rules, 2)


def test_a_clean_row_has_all_columns_and_leads_home(clean: Clean, page: MakePage) -> None:
    shown = datetime(2024, 3, 5, 8, 30, tzinfo=timezone(timedelta(hours=8)))
    day = clean(
        [page(1, url="http://www.paper.example/n/1?utm_x=1", values={"publish_time": shown, "title": "Ａ \n b"})]
    )
    (row,) = day.rows
    assert (row["source"], row["dt"], row["schema_version"]) == ("paper", DAY, 2)
    assert (row["title"], row["publish_time"]) == ("A b", datetime(2024, 3, 5, 0, 30, tzinfo=UTC))
    assert row["publish_time"].tzinfo is UTC
    assert (row["url"], row["url_rules_version"]) == ("http://www.paper.example/n/1?utm_x=1", 3)
    assert row["url_fp"] != row["canonical_fp"]
    assert (row["fetch_id"], row["task_id"], row["snap_key"]) == (f"{1:032x}", "task-1", "snap/1")
    assert (row["template"], row["template_version"]) == ("generic@1", 1)
    assert (row["tags"], row["flags"]) == (["news", "town"], [])
    assert (row["language"], row["paragraphs"], row["time_confidence"]) == ("zh", 1, 2)
    assert (row["body_chars"], row["body_quality"]) == (len(row["body"]), 1.0)
    assert len(row["content_hash"]) == 64


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ({}, Outcome.CLEAN, None),
        ({"kind": "list", "parsed": False}, Outcome.LISTING, None),
        ({"kind": "feed", "parsed": False}, Outcome.LISTING, None),
        ({"error": "timeout", "status": None, "parsed": False}, Outcome.FAILED, "timeout"),
        ({"error": "timeout", "kind": "list", "parsed": False}, Outcome.FAILED, "timeout"),
        ({"status": 404, "parsed": False}, Outcome.FAILED, "http_error"),
        ({"limited": "login_wall", "parsed": False}, Outcome.LIMITED, "login_wall"),
        ({"status": 304, "parsed": False}, Outcome.NOT_MODIFIED, None),
        ({"parsed": False}, Outcome.REJECTED, "snapshot_missing"),
        ({"problem": "not_html"}, Outcome.REJECTED, "not_html"),
        ({"values": {"title": None}}, Outcome.REJECTED, "title_missing"),
        ({"values": {"title": " \u3000 "}}, Outcome.REJECTED, "title_missing"),
        ({"values": {"title": "长" * 31}}, Outcome.REJECTED, "title_too_long"),
        ({"values": {"body": "短。"}}, Outcome.IN_REVIEW, "body_too_short"),
    ],
)
def test_every_fetch_has_the_outcome_of_what_it_gave(
    clean: Clean, page: MakePage, changes: dict[str, Any], outcome: Outcome, reason: str | None
) -> None:
    day = clean([page(1, **changes)])
    (entry,) = day.outcomes
    assert (entry.outcome, entry.reason, entry.rows_out) == (outcome, reason, int(outcome is Outcome.CLEAN))
    assert len(day.rows) == int(outcome is Outcome.CLEAN)
    rejected = outcome in {Outcome.REJECTED, Outcome.IN_REVIEW}
    assert [reject.reason for reject in day.rejects] == ([reason] if rejected else [])


def test_actions_are_kept_in_the_rejects_with_the_row_as_json(clean: Clean, page: MakePage) -> None:
    pages = [page(1, values={"title": None}), page(2, values={"title": "长" * 31}), page(3, values={"body": "短。"})]
    rejects = {reject.fetch_id: reject for reject in clean(pages).rejects}
    actions = [rejects[f"{number:032x}"].action for number in (1, 2, 3)]
    assert actions == [Action.REJECT, Action.DROP, Action.REVIEW]
    assert "missing" in rejects[f"{1:032x}"].detail
    assert "31" in rejects[f"{2:032x}"].detail
    stored = json.loads(json.dumps(dict(rejects[f"{3:032x}"].row)))
    assert (stored["body"], stored["time_confidence"]) == ("短。", 2)
    assert stored["publish_time"] == "2024-03-05T23:00:00+00:00"


def test_flags_mark_a_row_and_keep_it(clean: Clean, page: MakePage) -> None:
    unknown = {"publish_time": None, "time_confidence": TimeConfidence.UNKNOWN, "author": None}
    (row,) = clean([page(1, values=unknown)]).rows
    assert row["flags"] == ["no_author", "time_unknown"]


def test_the_first_check_that_does_not_pass_decides(clean: Clean, page: MakePage) -> None:
    day = clean([page(1, values={"title": None, "body": "短"})])
    assert [reject.reason for reject in day.rejects] == ["title_missing"]


def test_of_equal_pages_the_earliest_stays(clean: Clean, page: MakePage) -> None:
    url = "http://paper.example/n/1"
    first = page(2, url=f"{url}?utm_source=a", collect_time=datetime(2024, 3, 6, 1, tzinfo=UTC))
    later = page(1, url=url, collect_time=datetime(2024, 3, 6, 2, tzinfo=UTC))
    same_time = page(3, url=f"{url}?utm_source=b", collect_time=datetime(2024, 3, 6, 1, tzinfo=UTC))
    day = clean([later, same_time, first])
    assert [row["fetch_id"] for row in day.rows] == [first.fetch["fetch_id"]]
    assert Counter(entry.outcome for entry in day.outcomes) == {Outcome.DUPLICATE: 2, Outcome.CLEAN: 1}
    assert {reject.reason for reject in day.rejects} == {"duplicate_in_partition"}
    assert all(reject.action is Action.DROP and first.fetch["fetch_id"] in reject.detail for reject in day.rejects)


def test_an_edited_page_is_another_row(clean: Clean, page: MakePage) -> None:
    url = "http://paper.example/n/1"
    day = clean([page(1, url=url), page(2, url=url, values={"title": "老桥重新开放（更新）"})])
    assert len(day.rows) == 2
    assert len({row["canonical_fp"] for row in day.rows}) == 1


def test_a_time_told_from_the_fetch_does_not_make_a_page_another(clean: Clean, page: MakePage) -> None:
    url = "http://paper.example/n/1"
    at = [datetime(2024, 3, 5, hour, tzinfo=UTC) for hour in (1, 2)]
    pages = [
        page(n, url=url, values={"publish_time": time, "time_confidence": TimeConfidence.RELATIVE})
        for n, time in enumerate(at)
    ]
    assert len(clean(pages).rows) == 1
    certain = [page(n, url=url, values={"publish_time": time}) for n, time in enumerate(at)]
    assert len(clean(certain).rows) == 2


def test_rows_are_newest_first_and_unknown_times_last(clean: Clean, page: MakePage) -> None:
    times = [datetime(2024, 3, day, tzinfo=UTC) for day in (1, 3, 2)]
    pages = [page(n, values={"publish_time": time}) for n, time in enumerate(times)]
    pages.append(page(9, values={"publish_time": None}))
    order = [row["publish_time"] for row in clean(pages).rows]
    assert order == [times[1], times[2], times[0], None]


def test_a_fetch_that_came_twice_is_entered_once(clean: Clean, page: MakePage) -> None:
    twice = page(1)
    again = replace(twice, fetch={**twice.fetch, "batch_id": "a"})
    assert clean([twice, again]) == clean([again, twice]) == clean([twice])


def test_no_pages_give_an_empty_day(clean: Clean) -> None:
    day = clean([])
    assert (day.rows, day.rejects, day.outcomes) == ((), (), ())


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["detail", "list", "api"]),
        "status": st.sampled_from([None, 200, 304, 404]),
        "error": st.sampled_from([None, "timeout"]),
        "limited": st.sampled_from([None, "captcha"]),
        "parsed": st.booleans(),
        "problem": st.sampled_from([None, "not_html", "parser_limit"]),
        "url": st.sampled_from(
            ["http://paper.example/n/1", "http://paper.example/n/1?utm_a=1", "http://paper.example/2"]
        ),
        "values": st.fixed_dictionaries(
            {},
            optional={
                "title": st.none() | st.sampled_from(["一", "二", "长" * 40]),
                "body": st.none() | st.sampled_from(["短", "一二三，四五六。" * 10]),
                "time_confidence": st.sampled_from(list(TimeConfidence)),
            },
        ),
    },
)


@given(st.lists(CHANGES, max_size=12), st.randoms(use_true_random=False))
def test_the_books_balance_and_order_is_nothing(
    clean: Clean, page: MakePage, changes: list[dict[str, Any]], shuffler: Any
) -> None:
    pages = [page(number % 9, **change) for number, change in enumerate(changes)]
    unique = list({fetched.fetch["fetch_id"]: fetched for fetched in pages}.values())
    day = clean(unique)
    shuffled = list(unique)
    shuffler.shuffle(shuffled)
    assert clean(shuffled) == day
    assert [entry.fetch_id for entry in day.outcomes] == sorted(fetched.fetch["fetch_id"] for fetched in unique)
    assert sum(entry.rows_out for entry in day.outcomes) == len(day.rows)
    outcomes = Counter(entry.outcome for entry in day.outcomes)
    assert outcomes[Outcome.CLEAN] == len(day.rows)
    with_reject = outcomes[Outcome.REJECTED] + outcomes[Outcome.IN_REVIEW] + outcomes[Outcome.DUPLICATE]
    assert with_reject == len(day.rejects) == len({reject.fetch_id for reject in day.rejects})
    assert all(reject.reason in REJECT_REASONS for reject in day.rejects)
    pairs = [(row["canonical_fp"], row["content_hash"]) for row in day.rows]
    assert len(set(pairs)) == len(pairs)
