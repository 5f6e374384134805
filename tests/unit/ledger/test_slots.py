from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.slots import hold_back, wait_for_slot


def test_requests_to_one_domain_are_apart_and_others_are_not_held_up(ledger: Ledger, hands: Any) -> None:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        hands.move(seconds)

    def wait(domain: str) -> float:
        return wait_for_slot(ledger, domain, 3.0, sleep=sleep)

    start = ledger.clock.now_utc()
    assert wait("example.com") == 0.0
    assert wait("other.org") == 0.0
    assert wait("example.com") == 3.0
    assert wait("example.com") == 3.0
    assert ledger.clock.now_utc() - start == timedelta(seconds=6)
    assert naps == [3.0, 3.0]


def test_a_domain_that_asks_for_a_pause_gets_it_from_everybody(ledger: Ledger, hands: Any) -> None:
    now = ledger.clock.now_utc()
    sleep: Callable[[float], None] = hands.move
    hold_back(ledger, "example.com", now + timedelta(seconds=20))
    hold_back(ledger, "example.com", now + timedelta(seconds=10))
    assert wait_for_slot(ledger, "example.com", 1.0, sleep=sleep) == 20.0


def test_a_pause_asked_for_while_waiting_counts(ledger: Ledger, hands: Any) -> None:
    wait_for_slot(ledger, "example.com", 4.0)
    start = ledger.clock.now_utc()

    def sleep(seconds: float) -> None:
        hands.move(seconds)
        if ledger.clock.now_utc() - start < timedelta(seconds=5):
            hold_back(ledger, "example.com", start + timedelta(seconds=30))

    wait_for_slot(ledger, "example.com", 1.0, sleep=sleep)
    assert ledger.clock.now_utc() - start >= timedelta(seconds=30)
