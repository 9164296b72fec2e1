"""Every figure explains itself: inputs, formula code, result, unit and source."""

import math
from dataclasses import replace

import pytest

from app.core.explanation import explain
from app.core.layout import Layout
from app.core.request import Measured, SizingRequest
from app.core.sizing import SizingResult, size
from app.core.steps import Step
from app.core.units import GIB
from tests.core.memory_case import card, dense, release, request

PER_TOKEN = 4 * 2 * 8 * 128 * 2


def steps(asked: SizingRequest) -> tuple[SizingResult, dict[str, Step]]:
    """Return an answer and its steps by code."""
    result = size(asked)
    found = explain(result)
    by_code = {step.code: step for step in found}
    assert len(by_code) == len(found)
    assert all(step.source and step.unit for step in found)
    return result, by_code


def values(step: Step) -> dict[str, float]:
    """Return the inputs of a step that are numbers."""
    return {name: value for name, value in step.inputs if not isinstance(value, str)}


def test_the_steps_come_in_the_order_of_the_page() -> None:
    """From weights over planning and memory to blocks, tokens and verdict."""
    assert [step.code for step in explain(size(request()))] == [
        "checkpoint_bytes",
        "weights_bytes_per_rank",
        "bytes_per_block",
        "kv_bytes_per_token",
        "planning_pool",
        "planning_requests",
        "requested_memory",
        "weights",
        "peak_activation",
        "persistent_buffers",
        "non_torch",
        "cudagraph_estimate",
        "available_kv_cache_memory",
        "num_gpu_blocks",
        "blocks_per_request",
        "max_concurrency",
        "kv_cache_size_tokens",
        "verdict",
    ]


def test_every_displayed_number_is_the_result_of_a_step() -> None:
    """What the answer shows is what its steps end in."""
    result, found = steps(request())
    cache, plan, available = result.cache, result.planning, result.available_kv_cache_memory
    assert cache is not None
    assert plan is not None
    assert available is not None
    assert {code: found[code].result for code in found} == {
        "checkpoint_bytes": result.checkpoint_bytes,
        "weights_bytes_per_rank": result.weights_bytes_per_rank,
        "bytes_per_block": cache.bytes_per_block,
        "kv_bytes_per_token": 16 * PER_TOKEN * 63 / 1000,
        "planning_pool": plan.pool_bytes,
        "planning_requests": plan.requests,
        "requested_memory": 92 * GIB,
        **{term.code: term.likely for term in result.memory[:5]},
        "available_kv_cache_memory": int(available.likely),
        "num_gpu_blocks": cache.num_gpu_blocks,
        "blocks_per_request": cache.blocks_per_request,
        "max_concurrency": cache.max_concurrency,
        "kv_cache_size_tokens": cache.kv_cache_size_tokens,
        "verdict": result.verdict_requests,
    }


def test_the_planning_steps_can_be_recomputed_from_their_inputs() -> None:
    """Cards x (utilization x memory - reserve) - weights; then blocks, then requests."""
    _, found = steps(request(layout=Layout(tensor_parallel_size=2, replicas=3)))
    pool = values(found["planning_pool"])
    expected = int(
        pool["cards_per_copy"]
        * (pool["gpu_memory_utilization"] * pool["card_memory_bytes"] - pool["reserve_bytes"])
    ) - int(pool["weights_bytes"])
    assert found["planning_pool"].result == expected
    requests = values(found["planning_requests"])
    assert requests["pool_bytes"] == expected
    assert requests["copies"] == 3
    blocks = expected // int(requests["bytes_per_block"])
    assert requests["max_concurrency"] == pytest.approx(
        blocks / int(requests["blocks_per_request"])
    )
    assert found["planning_requests"].result == 3 * (blocks // int(requests["blocks_per_request"]))


def test_a_given_utilization_shows_in_both_rules() -> None:
    """Budget and planning rule name the share that was set."""
    _, found = steps(request(gpu_memory_utilization=0.5))
    assert dict(found["planning_pool"].inputs)["gpu_memory_utilization"] == 0.5
    assert dict(found["requested_memory"].inputs) == {
        "total_memory_bytes": 100 * GIB,
        "gpu_memory_utilization": 0.5,
    }
    assert found["requested_memory"].result == math.ceil(50 * GIB)


def test_memory_steps_carry_their_range_and_what_drives_them() -> None:
    """Tokens and sequences for the peak, capture sizes for the graphs."""
    _, found = steps(request(max_num_seqs=7, max_num_batched_tokens=512))
    peak = values(found["peak_activation"])
    assert peak["max_num_seqs"] == 7
    assert peak["max_num_batched_tokens"] == 512
    likely = found["peak_activation"].result
    assert isinstance(likely, int)
    assert peak["low_bytes"] <= likely <= peak["high_bytes"]
    assert values(found["cudagraph_estimate"])["cudagraph_capture_sizes"] > 0
    assert dict(found["non_torch"].inputs)["cards_per_copy"] == 1


def test_given_memory_needs_no_memory_steps() -> None:
    """A fixed cache is not derived from terms."""
    _, found = steps(request(kv_cache_memory_bytes=50 * GIB))
    assert "requested_memory" not in found
    assert "available_kv_cache_memory" not in found
    assert dict(found["num_gpu_blocks"].inputs)["available_bytes"] == 50 * GIB


def test_a_failing_start_explains_what_it_knows() -> None:
    """Costs, planning rule and memory are there; blocks and verdict are not."""
    asked = request(max_model_len=131072, model=dense(layers=dense().layers * 50))
    result, found = steps(asked)
    assert not result.ok
    assert "available_kv_cache_memory" in found
    assert "num_gpu_blocks" not in found
    assert "verdict" not in found


def test_nothing_is_explained_where_nothing_was_worked_out() -> None:
    """A refusal before memory has no steps; an unknown card has no planning steps."""
    assert explain(size(request(layout=Layout(tensor_parallel_size=3)))) == ()


def test_releases_without_estimate_explain_the_planning_rule_alone() -> None:
    """No memory, no blocks, no verdict step."""
    old = replace(release("0.8.5"), memory=None)
    _, found = steps(request(release=old))
    assert set(found) == {
        "checkpoint_bytes",
        "weights_bytes_per_rank",
        "bytes_per_block",
        "kv_bytes_per_token",
        "planning_pool",
        "planning_requests",
    }


def test_no_step_of_the_rule_where_the_cards_memory_is_unknown() -> None:
    """A cache read from a log on a card nobody knows: the blocks are explained, the rule is not."""
    measured = Measured(available_kv_cache_memory_bytes=10 * GIB)
    _, found = steps(request(gpu=card(None, None), measured=measured))
    assert "num_gpu_blocks" in found
    assert not {"planning_pool", "planning_requests"} & found.keys()


def test_a_block_names_the_dtype_that_auto_means() -> None:
    """A reader of the formula learns what is stored, not that nobody chose it."""
    asked = request()
    assert asked.engine_args.kv_cache_dtype == "auto"
    _, found = steps(asked)
    assert dict(found["bytes_per_block"].inputs)["kv_cache_dtype"] == "bfloat16"
    small = replace(asked, engine_args=replace(asked.engine_args, kv_cache_dtype="fp8"))
    _, found = steps(small)
    assert dict(found["bytes_per_block"].inputs)["kv_cache_dtype"] == "fp8"
