"""What a measurement does not say about another server."""

from dataclasses import replace

from app.core.request import Measured
from app.core.sizing import measured_here
from app.core.units import GIB
from tests.core.memory_case import request, shipped

MEASURED = Measured(
    weights_bytes=28 * GIB,
    peak_activation_bytes=2 * GIB,
    non_torch_bytes=GIB,
    cudagraph_bytes=GIB // 2,
)
THERE = request()
HERE = replace(THERE, engine_args=THERE.engine_args.with_flag("max_num_seqs", 16))


def test_what_was_not_measured_on_another_server_stays_here() -> None:
    """A measurement of this very server counts as it is."""
    assert measured_here(replace(THERE, measured=MEASURED)) is MEASURED
    same = replace(THERE, measured=replace(MEASURED, taken_on=THERE))
    assert measured_here(same) == MEASURED


def test_without_an_estimate_of_both_nothing_carries_over() -> None:
    """0.9.0 has no estimate of memory, so nothing says how a term would change."""
    old = replace(HERE, release=shipped("0.9.0"))
    asked = replace(old, measured=replace(MEASURED, taken_on=THERE))
    assert measured_here(asked) == Measured()


def test_a_term_that_was_nothing_there_has_no_scale() -> None:
    """No graphs under --enforce-eager say nothing about how large they are elsewhere."""
    eager = replace(THERE, engine_args=THERE.engine_args.with_flag("enforce_eager", value=True))
    without = replace(MEASURED, cudagraph_bytes=0, taken_on=eager)
    assert measured_here(replace(THERE, measured=without)).cudagraph_bytes is None


def test_a_term_that_was_not_measured_is_not_made_up() -> None:
    """Of a log that names the weights alone, the weights alone carry over."""
    weights = Measured(weights_bytes=28 * GIB, taken_on=THERE)
    assert measured_here(replace(HERE, measured=weights)) == Measured(
        weights_bytes=28 * GIB, is_carried_over=True
    )
