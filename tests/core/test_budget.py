"""What vLLM sees of a card, asks for, and finds free."""

import math

from app.core.budget import CardMemory, card_memory, free_at_start, requested_memory
from app.core.coefficients import Bounds, exactly
from app.core.layout import Layout
from app.core.units import GIB
from tests.core.memory_case import card, coefficients, request


def test_a_given_total_beats_the_cards_own() -> None:
    """gpu_total_memory_bytes is what vLLM sees."""
    asked = request(gpu_total_memory_bytes=42)
    assert card_memory(asked, coefficients()) == CardMemory(exactly(42))


def test_a_known_total_has_no_spread() -> None:
    """The card's own figure stands."""
    assert card_memory(request(), coefficients()) == CardMemory(exactly(100 * GIB))


def test_an_unknown_total_is_derived_from_the_driver_and_says_so() -> None:
    """The driver reports 1 to 4 GiB more, most likely 2: a range, marked as derived."""
    found = card_memory(request(gpu=card(total_gib=None)), coefficients())
    assert found == CardMemory(Bounds(98 * GIB, 100 * GIB, 101 * GIB), from_driver=True)


def test_a_card_nobody_knows_has_no_memory() -> None:
    """Neither figure known: nothing is guessed."""
    assert card_memory(request(gpu=card(None, None)), coefficients()) is None


def test_the_budget_is_rounded_up_at_every_end() -> None:
    """ceil(total x utilization), as vLLM does."""
    assert requested_memory(Bounds(11, 21, 31), 0.9) == Bounds(
        math.ceil(9.9), math.ceil(18.9), math.ceil(27.9)
    )


def test_context_and_nccl_are_not_free() -> None:
    """One card leaves out its context, a group of cards NCCL as well; ends swap."""
    spread = coefficients(context_bytes=Bounds(1.0, 2.0, 4.0))
    assert free_at_start(request(), spread, Bounds(90.0, 100.0, 110.0)) == Bounds(86.0, 98.0, 109.0)
    paired = request(layout=Layout(tensor_parallel_size=2))
    held = 2 * GIB
    assert free_at_start(paired, spread, exactly(3.0 * GIB)) == exactly(3.0 * GIB - held)


def test_what_others_hold_beyond_the_card_leaves_nothing() -> None:
    """Free memory is never negative, at any end."""
    crowded = request(other_processes_bytes=500 * GIB)
    assert free_at_start(crowded, coefficients(), exactly(100.0 * GIB)) == exactly(0.0)
