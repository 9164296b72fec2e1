"""What must hold for any server: order, sums, promises."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.layout import Layout
from app.core.request import SizingRequest
from app.core.sizing import SizingResult, size
from app.core.units import GIB
from tests.core.memory_case import card, dense, release, request, shipped

VERSIONS = ("0.9.2", "0.11.2", "0.19.1", "0.25.1", "0.28.0", "0.32.0", "0.33.0")


@st.composite
def requests(draw: st.DrawFn) -> SizingRequest:
    """Draw a server of a dense model with the shipped coefficients."""
    widths = draw(st.sampled_from((1, 2, 4, 8)))
    model = dense(
        layers=dense().layers * draw(st.integers(1, 30)),
        vocab_size=draw(st.integers(100, 300_000)),
        multimodal=draw(st.booleans()),
    )
    sequences = draw(st.integers(1, 2048))
    return request(
        model=model,
        gpu=card(draw(st.floats(8.0, 200.0)), draw(st.one_of(st.none(), st.just(200 * 1024)))),
        release=shipped(draw(st.sampled_from(VERSIONS))),
        layout=Layout(
            tensor_parallel_size=widths,
            pipeline_parallel_size=draw(st.sampled_from((1, 2))),
            replicas=draw(st.integers(1, 3)),
        ),
        max_model_len=draw(st.integers(1, 131072)),
        max_num_seqs=sequences,
        max_num_batched_tokens=max(sequences, draw(st.integers(1, 16384))),
        gpu_memory_utilization=draw(st.one_of(st.none(), st.floats(0.05, 1.0))),
        enforce_eager=draw(st.booleans()),
    )


@given(requests())
def test_ranges_are_ordered_and_contain_the_likely_figure(asked: SizingRequest) -> None:
    """Low, likely, high of memory, tokens and requests never cross."""
    result = size(asked)
    for each in (
        result.available_kv_cache_memory,
        result.tokens_range,
        result.concurrency_range,
    ):
        assert each is None or each.low <= each.likely <= each.high
    assert all(term.low <= term.likely <= term.high for term in result.memory)


@given(requests())
def test_the_bar_sums_to_the_card_wherever_it_fits(asked: SizingRequest) -> None:
    """To the byte, pipeline stages included."""
    result = size(asked)
    if result.ok:
        assert sum(term.likely for term in result.memory) == result.total_memory_bytes


@given(requests())
def test_no_promise_exceeds_either_rule(asked: SizingRequest) -> None:
    """Neither the planning rule nor the cautious end of the log."""
    result = size(asked)
    assert result.planning is not None
    assert 0 <= result.verdict_requests <= result.planning.requests
    assert result.planning.pool_bytes >= 0
    if result.concurrency_range is not None:
        engines = asked.layout.engines
        assert result.verdict_requests <= int(result.concurrency_range.low) * engines
    if not result.ok:
        assert result.verdict_requests == 0


@given(requests())
def test_cold_holds_no_more_than_warm(asked: SizingRequest) -> None:
    """And the likely figure lies between both."""
    result = size(asked)
    if result.cold_concurrency is not None and result.warm_concurrency is not None:
        assert result.cache is not None
        assert result.cold_concurrency <= result.cache.max_concurrency <= result.warm_concurrency


def _tokens(result: SizingResult) -> int:
    return 0 if result.cache is None else result.cache.kv_cache_size_tokens


@given(requests(), st.floats(0.5, 50.0))
def test_a_larger_card_never_holds_less(asked: SizingRequest, more_gib: float) -> None:
    """More memory, no fewer tokens; and no failure where there was none."""
    total = asked.gpu.total_memory_bytes
    assert total is not None
    larger = replace(asked, gpu_total_memory_bytes=total + int(more_gib * GIB))
    before, after = size(asked), size(larger)
    assert _tokens(after) >= _tokens(before)
    assert after.ok or not before.ok


@given(requests(), st.integers(1, 60))
def test_heavier_weights_never_leave_more(asked: SizingRequest, gib: int) -> None:
    """Measured weights replace the predicted ones, and more of them leave less."""
    light = replace(asked, measured=replace(asked.measured, weights_bytes=GIB))
    heavy = replace(asked, measured=replace(asked.measured, weights_bytes=(1 + gib) * GIB))
    assert _tokens(size(heavy)) <= _tokens(size(light))


@given(requests())
def test_answers_do_not_depend_on_what_was_asked_before(asked: SizingRequest) -> None:
    """The same question, the same answer, in equal but distinct objects."""
    again = replace(asked, layout=replace(asked.layout), engine_args=replace(asked.engine_args))
    assert size(asked) == replace(size(again), request=asked)


def test_the_round_coefficients_are_not_the_shipped_ones() -> None:
    """The control: these properties run on the project's own numbers."""
    assert shipped("0.32.0").memory is not release("0.32.0").memory
