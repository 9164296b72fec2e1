"""What the log is expected to print is a range, and the tightest card decides it."""

from dataclasses import replace

import pytest

from app.core.coefficients import Bounds, exactly
from app.core.engine_defaults import resolve_engine_args
from app.core.expectation import Expectation, binding_stage
from app.core.kv_cache import cache_shape
from app.core.layout import Layout
from app.core.memory import StageMemory
from app.core.releases import Release
from app.core.sizing import Range, size
from app.core.units import GIB
from tests.core.memory_case import card, dense, release, request

BLOCK = 16 * 4 * 2 * 8 * 128 * 2
PER_REQUEST = 63


def spread(**changes: object) -> Release:
    """Return a release whose starts scatter by a GiB down and two up."""
    return release(unexplained_bytes=Bounds(-2.0 * GIB, 0.0, GIB), **changes)


def test_the_range_is_the_block_arithmetic_at_both_ends() -> None:
    """Low and high memory give low and high blocks, tokens and requests."""
    result = size(request(release=spread()))
    available, concurrency = result.available_kv_cache_memory, result.concurrency_range
    tokens = result.tokens_range
    assert available is not None
    assert concurrency is not None
    assert tokens is not None
    assert available.likely - available.low == pytest.approx(GIB)
    assert available.high - available.likely == pytest.approx(2 * GIB)
    assert concurrency.low == int(available.low) // BLOCK / PER_REQUEST
    assert concurrency.high == int(available.high) // BLOCK / PER_REQUEST
    assert result.cache is not None
    assert concurrency.likely == result.cache.max_concurrency
    assert tokens.likely == result.cache.kv_cache_size_tokens
    assert tokens.low == pytest.approx(concurrency.low * 1000, abs=2)
    assert tokens.high == pytest.approx(concurrency.high * 1000, abs=2)


def test_memory_below_nothing_holds_no_block() -> None:
    """The cautious end of a tight start is 0, not less."""
    wide = release(unexplained_bytes=Bounds(0.0, 0.0, 500.0 * GIB))
    result = size(request(release=wide))
    assert result.concurrency_range is not None
    assert result.concurrency_range.low == 0.0
    assert result.verdict_requests == 0


def test_a_cold_and_a_warm_start_are_told_apart_where_they_differ() -> None:
    """Both figures are given, cold below warm, and the likely one is between or at an end."""
    model = dense(vocab_size=1_000_000)
    cold = release(cold_compile=Bounds(0.0, 1.0, 1.0))
    asked = request(model=model, release=cold, max_num_seqs=1, max_num_batched_tokens=1000)
    result = size(asked)
    assert result.cold_concurrency is not None
    assert result.warm_concurrency is not None
    assert result.cold_concurrency < result.warm_concurrency
    assert result.cache is not None
    assert result.cold_concurrency == result.cache.max_concurrency
    eager = size(replace(asked, engine_args=replace(asked.engine_args, enforce_eager=True)))
    assert eager.cold_concurrency is None
    assert eager.warm_concurrency is None


@pytest.mark.parametrize(
    ("changes", "widest"),
    [
        ({"unexplained_bytes": Bounds(-9.0 * GIB, 0.0, 0.0)}, "unexplained"),
        ({"non_torch_bytes": Bounds(0.0, GIB, 9.0 * GIB)}, "non_torch"),
        ({"weights": {"": Bounds(1.0, 1.0, 9000.0)}}, "weights"),
    ],
)
def test_the_term_behind_most_of_the_range_is_named(
    changes: dict[str, object], widest: str
) -> None:
    """A reader learns what a pasted log would narrow."""
    assert size(request(release=release(**changes))).widest_term == widest


def test_an_unknown_total_can_be_what_is_widest() -> None:
    """A card whose total is derived from the driver says so."""
    assert size(request(gpu=card(total_gib=None))).widest_term == "total_memory"


def test_the_tightest_of_several_stages_is_shown() -> None:
    """The stage that holds the fewest blocks gives available memory and bar."""
    asked = request(
        model=dense(vocab_size=400_000, layers=dense().layers * 2),
        layout=Layout(pipeline_parallel_size=2),
        max_num_seqs=1000,
        max_num_batched_tokens=1000,
    )
    result = size(asked)
    available = result.available_kv_cache_memory
    assert available is not None
    sampler = 10 * 1000 * 400_000
    by_code = {term.code: term.likely for term in result.memory}
    assert by_code["peak_activation"] == pytest.approx(sampler, rel=0.01)
    assert by_code["kv_cache"] == int(available.likely)


def test_stages_are_compared_in_blocks_not_in_bytes() -> None:
    """A stage with fewer bytes may hold more blocks when its layers are fewer."""

    def memory(gib: float) -> StageMemory:
        none = exactly(0.0)
        return StageMemory(*(none,) * 7, available=exactly(gib * GIB), cold_peak=0.0, warm_peak=0.0)

    asked = request(model=dense(layers=dense().layers * 5), layout=Layout())
    paired = replace(asked, layout=Layout(pipeline_parallel_size=2))
    shape = cache_shape(paired, resolve_engine_args(paired))
    first, second = shape.bytes_per_block_by_stage
    assert first == second
    small, large = memory(1.0), memory(2.0)
    assert binding_stage((large, small), shape) is small
    assert binding_stage((small, large), shape) is small


def test_without_a_cache_only_the_memory_is_known() -> None:
    """A start that fails still says what is left and why the range is wide."""
    result = size(request(release=spread(), max_model_len=131072, model=dense(
        layers=dense().layers * 50)))  # fmt: skip
    assert result.reason is not None
    assert result.available_kv_cache_memory is not None
    assert result.tokens_range is None
    assert result.concurrency_range is None
    assert result.widest_term == "unexplained"


def test_nothing_is_expected_of_given_memory() -> None:
    """A given or measured memory is exact: no range."""
    assert Expectation() == Expectation(None, None, None, None, None, None)
    result = size(request(release=spread(), kv_cache_memory_bytes=GIB))
    assert result.tokens_range is None
    assert result.concurrency_range is None
    assert result.available_kv_cache_memory == Range(GIB, GIB, GIB)
