"""The figures the vendor published must come out: Llama 3.3 70B, NVIDIA's FP8 checkpoint."""

import pytest

from app.core.sizing import SizingResult, size
from app.core.units import GIB
from app.core.ways_out import Alternatives, ways_out
from app.wizard.answers import parse_answers
from app.wizard.sizing_request import to_request
from tests.shipped import catalogue

CASE = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "8192",
}


def answer(**changes: str) -> SizingResult:
    """Size the vendor's case with other inputs."""
    prepared = to_request(parse_answers({**CASE, **changes}.items()).answers, catalogue())
    assert prepared.request is not None
    return size(prepared.request)


@pytest.mark.parametrize(
    ("changes", "requests"),
    [
        ({}, 12),
        ({"kv_cache_dtype": "bfloat16"}, 6),
        ({"kv_cache_dtype": "nvfp4"}, 21),
        ({"replicas": "2"}, 24),
        ({"data_parallel_size": "2"}, 24),
        ({"tensor_parallel_size": "2"}, 78),
        ({"gpu": "h200-nvl"}, 44),
    ],
)
def test_the_planning_rule_gives_the_published_requests_and_so_does_the_verdict(
    changes: dict[str, str], requests: int
) -> None:
    """12, 6, 21, 24, 78 and 44 requests of 8,192 tokens; the log promises no less."""
    result = answer(**changes)
    assert result.planning is not None
    assert result.planning.requests == requests
    assert result.verdict_requests == requests


def test_a_given_utilization_counts_in_the_rule() -> None:
    """13.8 requests before rounding down at 0.92."""
    result = answer(gpu_memory_utilization="0.92")
    assert result.planning is not None
    assert result.planning.max_concurrency == pytest.approx(13.8, abs=0.05)


def test_the_longest_context_holds_less_than_one_request_and_a_way_out_fits() -> None:
    """0.77 requests of 131,072 tokens; what is offered instead promises at least one."""
    result = answer(max_model_len="131072")
    assert not result.ok
    assert result.planning is not None
    assert result.planning.max_concurrency == pytest.approx(0.77, abs=0.005)
    assert result.reason is not None
    assert result.reason.code == "kv_cache_too_small"
    ways = ways_out(result, Alternatives())
    assert ways
    assert all(way.result.verdict_requests >= 1 for way in ways)


def test_the_log_of_0_32_is_expected_above_the_planning_figure() -> None:
    """About 13.3x after an empty compile cache, a little more after a filled one."""
    result = answer()
    assert result.cache is not None
    assert result.concurrency_range is not None
    assert result.cold_concurrency == pytest.approx(13.3, abs=0.1)
    assert result.cache.max_concurrency == result.cold_concurrency
    assert result.warm_concurrency is not None
    assert result.cold_concurrency < result.warm_concurrency < result.concurrency_range.high
    assert result.concurrency_range.low > 12
    assert result.concurrency_range.high == pytest.approx(14.1, abs=0.2)


def test_weights_come_from_the_shapes() -> None:
    """67.67 GiB in the files, 67.70 as loaded."""
    result = answer()
    assert result.checkpoint_bytes == pytest.approx(67.67 * GIB, rel=1e-4)
    assert result.weights_bytes_per_rank == pytest.approx(67.70 * GIB, rel=2e-4)


@pytest.mark.parametrize(("dtype", "kib"), [("bfloat16", 320.0), ("fp8", 160.0), ("nvfp4", 90.0)])
def test_a_token_costs_what_was_published(dtype: str, kib: float) -> None:
    """320, 160 and 90 KiB of cache a token."""
    cache_of = answer(kv_cache_dtype=dtype).cache
    assert cache_of is not None
    assert cache_of.bytes_per_block / cache_of.block_size / 1024 == kib
