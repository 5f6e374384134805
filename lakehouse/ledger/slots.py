"""One rate limit per domain over all threads, processes and machines that share the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import domain_slot

LONGEST_NAP_S = 5.0


def wait_for_slot(
    ledger: Ledger, domain: str, interval: float, *, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Wait until one request may be sent to `domain`, and take that slot; gives the seconds waited.

    After a slot is taken the next one is `interval` seconds later, for whoever asks first.
    """
    waited = 0.0
    while (seconds := _take(ledger, domain, interval)) > 0:
        nap = min(seconds, LONGEST_NAP_S)
        sleep(nap)
        waited += nap
    return waited


def hold_back(ledger: Ledger, domain: str, until: datetime) -> None:
    """Let nobody send to `domain` before `until` (a Retry-After); never shortens a longer pause."""
    insert = ledger.insert(domain_slot).values(domain=domain, next_at=until)
    statement = insert.on_conflict_do_update(
        index_elements=[domain_slot.c.domain],
        set_={"next_at": until},
        where=domain_slot.c.next_at < insert.excluded.next_at,
    )
    with ledger.write() as connection:
        connection.execute(statement)


def _take(ledger: Ledger, domain: str, interval: float) -> float:
    """Take the slot of `domain` and give 0, or give the seconds until somebody may take it."""
    now = ledger.clock.now_utc()
    insert = ledger.insert(domain_slot).values(domain=domain, next_at=now + timedelta(seconds=interval))
    statement = insert.on_conflict_do_update(
        index_elements=[domain_slot.c.domain],
        set_={"next_at": insert.excluded.next_at},
        where=domain_slot.c.next_at <= now,
    )
    with ledger.write() as connection:
        # A row comes back only where one was inserted or changed; the count of an INSERT is not to be relied on.
        if connection.execute(statement.returning(domain_slot.c.domain)).first() is not None:
            return 0.0
        free_at: datetime = connection.execute(
            sa.select(domain_slot.c.next_at).where(domain_slot.c.domain == domain)
        ).scalar_one()
    return max((free_at - now).total_seconds(), 0.001)
