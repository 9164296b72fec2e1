"""Robots are slowed down; people are not asked anything."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.quotes.spam import Limiter, network_of, too_fast
from app.quotes.token import FormToken

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("seconds", "expected"), [(0, True), (2.9, True), (3, False), (99, False)])
def test_the_clock_catches_what_no_person_can_do(seconds: float, expected: bool) -> None:  # noqa: FBT001
    """A form that comes back within three seconds was filled in by a program."""
    token = FormToken("f", START)
    assert too_fast(token, START + timedelta(seconds=seconds), 3) is expected


def test_the_counter_lets_a_network_wait_and_nobody_else() -> None:
    """After two from one network the third must wait; another network need not."""
    limiter = Limiter("2/hour")
    with time_machine.travel(START, tick=False):
        assert [limiter.seconds_to_wait("192.0.2.1") for _ in range(2)] == [0, 0]
        assert 0 < limiter.seconds_to_wait("192.0.2.77") <= 3600
        assert limiter.seconds_to_wait("198.51.100.1") == 0
    with time_machine.travel(START + timedelta(hours=2, seconds=1), tick=False):
        assert limiter.seconds_to_wait("192.0.2.1") == 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("testclient", "unknown"),
        ("", "unknown"),
    ],
)
def test_addresses_are_shortened(address: str, network: str) -> None:
    """The counter knows a network, never a person."""
    assert network_of(address) == network


def test_no_address_is_kept() -> None:
    """What the counter keeps in memory holds neither an address nor a network."""
    limiter = Limiter("2/hour")
    limiter.seconds_to_wait("192.0.2.77")
    assert limiter._strategy is not None
    assert "192.0.2" not in repr(vars(limiter._strategy.storage))
