"""Other processes on a card: beside the budget, in its way, and once for all instances."""

from dataclasses import replace

from app.core.explanation import explain
from app.core.request import Measured, SizingRequest
from app.core.shared_card import shared_card
from app.core.sizing import size
from app.core.units import GIB
from app.core.ways_out import Alternatives, ways_out
from tests.core.memory_case import dense, request, shipped

ALONE = Alternatives(tensor_parallel_sizes=(1, 2))


def bar(asked: SizingRequest) -> dict[str, int]:
    """Return the likely bytes of each term of a card."""
    return {term.code: term.likely for term in size(asked).memory}


def test_they_take_nothing_from_a_budget_that_is_free() -> None:
    """Half a card beside 40 GiB of others holds as much as half an empty card."""
    half = request(gpu_memory_utilization=0.5)
    shared = size(replace(half, other_processes_bytes=40 * GIB))
    assert shared.ok
    assert shared.cache == size(half).cache
    assert shared.planning == size(half).planning


def test_a_budget_they_stand_in_the_way_of_is_refused() -> None:
    """Of 100 GiB with 1 GiB of context and 40 of others, 59 are free: 59 start, 60 do not."""
    beside = request(gpu_memory_utilization=0.59, other_processes_bytes=40 * GIB)
    assert size(beside).ok
    reason = size(replace(beside, other_processes_bytes=41 * GIB)).reason
    assert reason is not None
    assert reason.code == "free_memory_below_request"
    numbers = dict(reason.numbers)
    assert numbers["free_gib"] == 58.0
    assert numbers["other_processes_gib"] == 41.0
    assert "(58.0/100.0 GiB)" in reason.vllm_error


def test_a_fixed_cache_does_not_spare_the_check() -> None:
    """vLLM asks for the share of the card to be free even where --kv-cache-memory-bytes is set."""
    fixed = request(kv_cache_memory_bytes=GIB, other_processes_bytes=40 * GIB)
    assert size(fixed).reason is not None
    lower = request(
        kv_cache_memory_bytes=GIB, other_processes_bytes=40 * GIB, gpu_memory_utilization=0.5
    )
    assert size(lower).ok


def test_more_than_the_card_has_leaves_nothing_free() -> None:
    """Free memory is never negative, and no share of the card is a way out."""
    result = size(request(other_processes_bytes=500 * GIB))
    reason = result.reason
    assert reason is not None
    assert dict(reason.numbers)["free_gib"] == 0.0
    ways = [way.change for way in ways_out(result, ALONE)]
    assert ways == [(("other_processes_gib", 0.0),)]


def test_a_measured_start_already_had_them() -> None:
    """Where the cache was read from a log, vLLM had started: nothing is checked again."""
    measured = Measured(available_kv_cache_memory_bytes=GIB)
    assert size(request(measured=measured, other_processes_bytes=90 * GIB)).ok


def test_the_bar_shows_them_and_still_sums_to_the_card() -> None:
    """They are a term of their own, taken from what the budget leaves over."""
    half = request(gpu_memory_utilization=0.5)
    shared = bar(replace(half, other_processes_bytes=40 * GIB))
    assert shared["other_processes"] == 40 * GIB
    assert shared["outside_utilization"] == bar(half)["outside_utilization"] - 40 * GIB
    assert sum(shared.values()) == 100 * GIB
    assert "other_processes" not in bar(half)


def test_a_bar_with_too_much_shows_by_how_much() -> None:
    """A budget of 92 GiB and 40 of others make 132 on a card of 100."""
    assert sum(bar(request(other_processes_bytes=40 * GIB)).values()) == 132 * GIB


def test_a_step_says_what_is_free_at_start() -> None:
    """Total less context less others, beside what is asked for; no step for a card of its own."""
    steps = {step.code: step for step in explain(size(request(other_processes_bytes=40 * GIB)))}
    free = steps["free_memory"]
    assert free.result == 59 * GIB
    assert dict(free.inputs) == {
        "total_memory_bytes": 100 * GIB,
        "context_bytes": GIB,
        "other_processes_bytes": 40 * GIB,
        "requested_bytes": 92 * GIB,
    }
    assert "free_memory" not in {step.code for step in explain(size(request()))}


def test_the_ways_out_are_a_share_that_is_free_or_a_card_of_its_own() -> None:
    """The largest hundredth that is free is offered, and ending the other processes."""
    found = [way.change for way in ways_out(size(request(other_processes_bytes=40 * GIB)), ALONE)]
    assert (("gpu_memory_utilization", 0.59),) in found
    assert (("other_processes_gib", 0.0),) in found


def test_more_cards_at_the_share_that_is_free_there_are_a_way_out() -> None:
    """A request of 50 GiB beside 60.5 of others starts on two cards, less what NCCL holds."""
    long = dense(layers=dense().layers * 50)
    asked = request(model=long, max_model_len=65536, other_processes_bytes=121 * GIB // 2)
    found = [way.change for way in ways_out(size(asked), ALONE)]
    assert (("gpu_memory_utilization", 0.37), ("tensor_parallel_size", 2)) in found


def test_a_usual_share_comes_before_an_odd_one() -> None:
    """With 5 GiB of others 0.94 would be free, so the lower usual share 0.92 is offered."""
    asked = request(other_processes_bytes=5 * GIB, gpu_memory_utilization=0.97)
    found = [way.change for way in ways_out(size(asked), ALONE)]
    assert (("gpu_memory_utilization", 0.92),) in found


def test_a_release_that_charges_them_says_so() -> None:
    """Up to 0.9.0 they count against the budget; here that release has no estimate at all."""
    old = size(request(release=shipped("0.9.0"), other_processes_bytes=GIB))
    new = size(request(other_processes_bytes=GIB, gpu_memory_utilization=0.5))
    assert "other_processes_charged" in {each.code for each in old.assumptions}
    assert "other_processes_beside_budget" in {each.code for each in new.assumptions}
    assert not any(each.code.startswith("other_") for each in size(request()).assumptions)


def test_two_instances_count_them_once() -> None:
    """Two halves of 45 GiB and their contexts leave room for 8 GiB of others, not for 9."""
    half = request(gpu_memory_utilization=0.45)
    room = [size(replace(half, other_processes_bytes=8 * GIB))] * 2
    fits = shared_card(room)
    assert fits is not None
    assert fits.taken_bytes == (45 + 45 + 1 + 1 + 8) * GIB
    assert fits.fits
    tight = shared_card([room[0], size(replace(half, other_processes_bytes=9 * GIB))])
    assert tight is not None
    assert not tight.fits
