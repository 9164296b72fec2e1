"""size() answers every request: figures, verdict, or what keeps it from one."""

from dataclasses import replace

import pytest

from app.core.coefficients import Bounds
from app.core.layout import Layout
from app.core.model_spec import LengthSpec
from app.core.request import Measured
from app.core.sizing import Range, size
from app.core.units import AUTO_MAX_MODEL_LEN, GIB
from tests.core.memory_case import card, dense, release, request, shipped

BLOCK = 16 * 4 * 2 * 8 * 128 * 2
PER_REQUEST = 63


def test_the_verdict_never_promises_more_than_the_planning_rule() -> None:
    """The log would hold more; the cautious rule decides."""
    result = size(request())
    assert result.planning is not None
    assert result.cache is not None
    assert result.planning.requests < int(result.cache.max_concurrency)
    assert result.verdict_requests == result.planning.requests


def test_the_verdict_never_promises_more_than_the_cautious_end_of_the_log() -> None:
    """Over all engines: floor of the low end, times copies."""
    wide = release(unexplained_bytes=Bounds(0.0, 0.0, 40.0 * GIB))
    for layout in (Layout(), Layout(replicas=3), Layout(data_parallel_size=3)):
        result = size(request(release=wide, layout=layout))
        assert result.concurrency_range is not None
        assert result.planning is not None
        promised = int(result.concurrency_range.low) * layout.engines
        assert promised < result.planning.requests
        assert result.verdict_requests == promised


def test_a_failing_start_promises_nothing() -> None:
    """The planning figure is there all the same."""
    result = size(request(max_model_len=131072, model=dense(layers=dense().layers * 50)))
    assert not result.ok
    assert result.cache is None
    assert result.verdict_requests == 0
    assert result.log_lines == ()
    assert result.planning is not None
    assert 0 < result.planning.max_concurrency < 1
    assert result.weights_bytes_per_rank is not None
    assert result.checkpoint_bytes == 2 * 1024 * 4096


def test_what_vllm_refuses_before_memory_comes_back_as_a_reason() -> None:
    """Three cards for eight heads: no figure at all, but a code."""
    result = size(request(layout=Layout(tensor_parallel_size=3)))
    assert result.reason is not None
    assert result.reason.code == "heads_not_divisible"
    assert result.resolved is None
    assert result.planning is None
    assert result.memory == ()
    assert result.weights_bytes_per_rank is None
    assert result.checkpoint_bytes is None
    assert result.total_memory_bytes is None
    assert result.verdict_requests == 0


def test_given_available_memory_is_exact() -> None:
    """4 GiB are 16,384 blocks, whatever the card: no range, no estimate."""
    given = Measured(available_kv_cache_memory_bytes=4 * GIB)
    result = size(request(measured=given, gpu=card(None, None)))
    assert result.cache is not None
    assert result.cache.num_gpu_blocks == 4 * GIB // BLOCK
    assert result.cache.max_concurrency == 4 * GIB // BLOCK / PER_REQUEST
    assert result.concurrency_range is None
    assert result.available_kv_cache_memory == Range(4 * GIB, 4 * GIB, 4 * GIB)
    assert result.verdict_requests == 4 * GIB // BLOCK // PER_REQUEST


def test_measured_memory_wins_over_a_fixed_cache() -> None:
    """What a log printed is what there was."""
    result = size(
        request(
            measured=Measured(available_kv_cache_memory_bytes=GIB), kv_cache_memory_bytes=2 * GIB
        )
    )
    assert result.cache is not None
    assert result.cache.num_gpu_blocks == GIB // BLOCK


def test_no_memory_at_all_is_a_refusal_not_a_fault() -> None:
    """A given memory of zero bytes holds no request."""
    result = size(request(measured=Measured(available_kv_cache_memory_bytes=0)))
    assert result.reason is not None


def test_a_fixed_cache_is_exact_and_fills_the_bar() -> None:
    """The rest of the card lies outside the budget, which is ignored."""
    result = size(request(kv_cache_memory_bytes=50 * GIB))
    by_code = {term.code: term for term in result.memory}
    assert by_code["kv_cache"].likely == 50 * GIB
    assert by_code["kv_cache"].low == by_code["kv_cache"].high == 50 * GIB
    assert sum(term.likely for term in result.memory) == 100 * GIB
    assert result.concurrency_range is None


def test_a_fixed_number_of_blocks_is_exact() -> None:
    """--num-gpu-blocks-override leaves no range."""
    result = size(request(num_gpu_blocks_override=630))
    assert result.cache is not None
    assert result.cache.num_gpu_blocks == 630
    assert result.cache.max_concurrency == 10.0
    assert result.tokens_range is None
    assert result.widest_term is None


def test_releases_without_estimate_have_a_planning_figure_and_say_why() -> None:
    """Before 0.9.2 nothing is expected; a pasted memory gives exact figures."""
    old = replace(shipped("0.8.5"), memory=None)
    result = size(request(release=old))
    assert result.ok
    assert result.cache is None
    assert result.available_kv_cache_memory is None
    assert result.memory == ()
    assert result.planning is not None
    assert result.verdict_requests == result.planning.requests
    assert "memory_estimate_not_offered" in {each.code for each in result.assumptions}
    pasted = size(request(release=old, measured=Measured(available_kv_cache_memory_bytes=4 * GIB)))
    assert pasted.cache is not None
    assert pasted.cache.num_gpu_blocks == 4 * GIB // BLOCK


def test_auto_length_is_planned_at_the_length_that_fits() -> None:
    """--max-model-len auto shortens until one request fits; the rule uses that length."""
    model = dense(
        layers=dense().layers * 10,
        length=LengthSpec((("max_position_embeddings", 10_000_000),)),
    )
    result = size(request(model=model, max_model_len=AUTO_MAX_MODEL_LEN))
    assert result.ok
    assert result.cache is not None
    assert 1000 < result.cache.max_model_len < 10_000_000
    assert result.cache.max_concurrency == pytest.approx(1.0, abs=0.05)
    assert result.planning is not None
    assert result.planning.kv_cache_size_tokens == int(
        result.planning.max_concurrency * result.cache.max_model_len
    )


def test_the_log_line_is_printed_as_the_release_prints_it() -> None:
    """One line from 0.28, two before; from 0.30 with the platform's word."""
    new = size(request())
    assert new.cache is not None
    tokens, concurrency = new.cache.kv_cache_size_tokens, new.cache.max_concurrency
    (line,) = new.log_lines
    first, second = line.split(", Maximum concurrency for ")
    assert first == f"GPU KV cache size: {tokens:,} tokens"
    assert second == f"1,000 tokens per request: {concurrency:.2f}x"
    two = size(request(release=release("0.27.1")))
    assert [line.split(":")[0] for line in two.log_lines] == [
        "GPU KV cache size",
        "Maximum concurrency for 1,000 tokens per request",
    ]
    other = size(request(gpu=replace(card(), platform="XPU")))
    assert other.log_lines[0].startswith("XPU KV cache size: ")


def test_the_bar_sums_to_the_card() -> None:
    """Likely values of all terms are the total that vLLM sees, to the byte."""
    result = size(request(gpu_memory_utilization=0.83))
    assert sum(term.likely for term in result.memory) == 100 * GIB
    assert result.total_memory_bytes == 100 * GIB
    assert [term.code for term in result.memory] == [
        "weights",
        "peak_activation",
        "persistent_buffers",
        "non_torch",
        "cudagraph_estimate",
        "kv_cache",
        "outside_utilization",
    ]
    assert all(term.source for term in result.memory)
    assert all(term.low <= term.likely <= term.high for term in result.memory)


def test_the_bar_of_a_failing_start_shows_by_how_much_it_is_too_much() -> None:
    """No negative parts: cache and outside are 0, and the sum exceeds the card."""
    heavy = release(weights={"": Bounds(20_000.0, 20_000.0, 20_000.0)})
    result = size(request(release=heavy))
    by_code = {term.code: term.likely for term in result.memory}
    assert by_code["kv_cache"] == 0
    assert by_code["outside_utilization"] == 0
    assert sum(by_code.values()) > 100 * GIB
