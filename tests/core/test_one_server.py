"""Several sizings on one server: own cards first, then shared ones, never more than a card has."""

from app.core.layout import Layout
from app.core.one_server import place
from app.core.result import SizingResult
from app.core.shared_card import instance_of, shared_card
from app.core.sizing import size
from app.core.units import GIB
from tests.core.memory_case import card, release, request


def share(part: float, **changes: object) -> SizingResult:
    """Return a model that takes this part of a card of 100 GiB, and 1 GiB of context."""
    return size(request(gpu_memory_utilization=part, **changes))


def test_each_has_its_own_cards_where_there_are_enough() -> None:
    """A pair and a single on four cards take three of them, in the order they were given."""
    pair = size(request(layout=Layout(tensor_parallel_size=2)))
    found = place([pair, share(0.4)], 4)
    assert found.cards == ((0,), (0,), (1,))
    assert found.cards_of(0) == (0, 1)
    assert found.shared == ()


def test_small_ones_share_a_card_where_there_are_not() -> None:
    """Beside a pair, two halves of 45 GiB lie on the third card and take 92 of 100 GiB."""
    pair = size(request(layout=Layout(tensor_parallel_size=2)))
    found = place([share(0.45), pair, share(0.45)], 3)
    assert found.cards == ((1,), (1,), (0, 2))
    ((number, together),) = found.shared
    assert number == 2
    assert together.taken_bytes == 92 * GIB


def test_what_does_not_fit_takes_more_cards_than_there_are() -> None:
    """Two halves of 50 GiB and two contexts are more than a card has."""
    found = place([share(0.5), share(0.5)], 1)
    assert found.cards == ((0,), (1,))
    assert found.shared == ()


def test_copies_of_one_sizing_do_not_share_a_card() -> None:
    """Two copies of each of two sizings need two cards, one of each on either."""
    two = Layout(replicas=2)
    found = place([share(0.4, layout=two), share(0.4, layout=two)], 2)
    assert found.cards == ((0, 1), (0, 1))
    assert len(place([share(0.4, layout=two), share(0.4)], 1).cards) > 1


def test_the_largest_is_placed_first() -> None:
    """60 + 30 and 60 + 30 fit on two cards, though 30 + 30 came first."""
    found = place([share(0.3), share(0.3), share(0.6), share(0.6)], 2)
    assert [len(each) for each in found.cards] == [2, 2]


def test_a_thousand_copies_are_not_packed() -> None:
    """What cannot fit is answered at once, with the cards it would take."""
    many = share(0.1, layout=Layout(replicas=1000))
    assert len(place([many] * 4, 8).cards) == 4000


def test_a_fixed_cache_still_asks_for_its_share_at_start() -> None:
    """With 10 GiB of cache it keeps little, but 92 GiB must be free when it starts.

    So it starts first and leaves room for a half; of two such, the second finds too little.
    """
    fixed = size(request(kv_cache_memory_bytes=10 * GIB))
    assert fixed.ok
    kept = instance_of(fixed)
    assert kept is not None
    assert kept.held_bytes < 20 * GIB
    assert kept.asked_bytes == 93 * GIB
    beside = shared_card([share(0.5), fixed])
    assert beside is not None
    assert beside.fits
    assert beside.start_order == (1, 0)
    twice = shared_card([fixed, fixed])
    assert twice is not None
    assert not twice.fits
    lower = size(request(kv_cache_memory_bytes=10 * GIB, gpu_memory_utilization=0.4))
    both = shared_card([lower, lower])
    assert both is not None
    assert both.fits


def test_what_is_not_one_process_on_one_card_does_not_share() -> None:
    """A group of cards, a card of unknown memory, a release without estimate, other cards."""
    pair = size(request(layout=Layout(tensor_parallel_size=2)))
    unknown = size(request(gpu=card(None, None), kv_cache_memory_bytes=GIB))
    assert instance_of(pair) is None
    assert instance_of(unknown) is None
    assert shared_card([share(0.4), pair]) is None
    assert len(place([unknown, share(0.2)], 1).cards) == 2


def test_cards_of_different_totals_count_as_the_smaller() -> None:
    """Where somebody entered another total, the sum must fit in the smaller of the two."""
    small = size(request(gpu_memory_utilization=0.4, gpu_total_memory_bytes=90 * GIB))
    together = shared_card([share(0.4, release=release()), small])
    assert together is not None
    assert together.total_bytes == 90 * GIB
