"""What must be told is leased, told, tried again later, and in the end given up visibly."""

from datetime import timedelta

import pytest

from app.quotes.outbox import LEASE, MAX_ATTEMPTS, MAX_WAIT, Delivery, Outbox, wait_after
from app.quotes.repository import Repository
from tests.quotes.conftest import CREATED, Draft


@pytest.fixture
def due(repository: Repository, outbox: Outbox, draft: Draft) -> Delivery:
    """Return the one delivery of a new quote, leased by "me"."""
    repository.save(draft(), ("webhook",))
    (leased,) = outbox.lease("me", "webhook", moment=CREATED, limit=5)
    return leased


def test_a_lease_keeps_others_away_until_it_runs_out(outbox: Outbox, due: Delivery) -> None:
    """Nobody else gets a leased row; after two minutes somebody does, under the same key."""
    almost = CREATED + LEASE - timedelta(seconds=1)
    assert outbox.lease("other", "webhook", moment=almost, limit=5) == ()
    (again,) = outbox.lease("other", "webhook", moment=CREATED + LEASE, limit=5)
    assert (again.idempotency_key, again.attempts) == (due.idempotency_key, 2)


def test_who_lost_a_lease_changes_nothing(outbox: Outbox, due: Delivery) -> None:
    """A process that comes back late neither marks nor delays what another has taken over."""
    outbox.lease("other", "webhook", moment=CREATED + LEASE, limit=5)
    outbox.delivered(due, "me", CREATED)
    outbox.failed(due, "me", CREATED, code="late", retry_seconds=1)
    (row,) = outbox.of_quote(due.quote_id)
    assert (row.delivered_at, row.last_error) == (None, None)


def test_a_channel_leases_its_own_rows_only(outbox: Outbox, due: Delivery) -> None:
    """What waits for one channel is invisible to another."""
    later = CREATED + LEASE
    assert outbox.lease("me", "desk_mail", moment=later, limit=5) == ()
    assert len(outbox.lease("me", "webhook", moment=later, limit=5)) == 1


def test_delivered_once_is_delivered(outbox: Outbox, due: Delivery) -> None:
    """A delivered row is never due again and is counted as neither waiting nor dead."""
    outbox.delivered(due, "me", CREATED)
    (row,) = outbox.of_quote(due.quote_id)
    assert row.delivered_at == CREATED
    assert outbox.lease("me", "webhook", moment=CREATED + timedelta(days=9), limit=5) == ()
    assert (outbox.load().waiting, outbox.load().dead) == (0, 0)


def test_a_failure_waits_and_the_last_one_is_a_dead_letter(outbox: Outbox, due: Delivery) -> None:
    """After each failure it is due later; after the last it is dead, and can be revived."""
    moment = CREATED
    delivery = due
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert delivery.attempts == attempt
        dead = outbox.failed(delivery, "me", moment, code=f"try_{attempt}", retry_seconds=10)
        assert dead is (attempt == MAX_ATTEMPTS)
        assert outbox.lease("me", "webhook", moment=moment, limit=5) == ()
        moment += MAX_WAIT * 2
        if not dead:
            (delivery,) = outbox.lease("me", "webhook", moment=moment, limit=5)
    assert (outbox.load().waiting, outbox.load().dead) == (0, 1)
    (letter,) = outbox.dead_letters()
    assert letter.last_error == f"try_{MAX_ATTEMPTS}"
    assert outbox.revive(letter.id, moment)
    assert not outbox.revive(letter.id, moment), "what waits is no dead letter"
    (again,) = outbox.lease("me", "webhook", moment=moment, limit=5)
    assert (again.attempts, again.idempotency_key) == (1, due.idempotency_key)


def test_waits_double_up_to_six_hours() -> None:
    """10 s, 20 s, 40 s … six hours, a fifth more or less; all tries take three to four days."""
    assert timedelta(seconds=8) <= wait_after(1, 10) <= timedelta(seconds=12)
    assert timedelta(seconds=64) <= wait_after(4, 10) <= timedelta(seconds=96)
    assert wait_after(24, 10) <= MAX_WAIT * 1.2
    total = sum((min(timedelta(seconds=10 * 2**n), MAX_WAIT) for n in range(23)), timedelta())
    assert timedelta(days=3) < total < timedelta(days=4)
