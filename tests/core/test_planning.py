"""The vendor's planning rule, by hand."""

from dataclasses import replace

import pytest

from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import cache_shape
from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.planning import (
    copy_weights_bytes,
    left_for_cache_bytes,
    planning,
    planning_memory_bytes,
)
from app.core.request import SizingRequest
from app.core.result import Planning
from app.core.units import GIB
from tests.core.memory_case import card, dense, request

BLOCK = 16 * 4 * 2 * 8 * 128 * 2
PER_REQUEST = 63


def plan(asked: SizingRequest, weights: int = 10 * GIB) -> Planning:
    """Apply the rule to a request with 10 GiB of weights."""
    shape = cache_shape(asked, resolve_engine_args(asked))
    found = planning(asked, shape, 1000, weights)
    assert found is not None
    return found


def test_pool_is_nine_tenths_minus_three_gib_minus_weights() -> None:
    """0.9 x 102 - 3 - 10 GiB, in blocks of 256 KiB, 63 blocks a request, rounded down."""
    found = plan(request())
    pool = int(102 * GIB * 0.9 - 3 * GIB) - 10 * GIB
    assert found.pool_bytes == pool
    blocks = pool // BLOCK
    assert found.max_concurrency == blocks / PER_REQUEST
    assert found.requests == blocks // PER_REQUEST
    assert found.kv_cache_size_tokens == int(blocks / PER_REQUEST * 1000)


def test_a_given_utilization_replaces_the_nine_tenths() -> None:
    """--gpu-memory-utilization counts in the rule, the release's default does not."""
    asked = request(gpu_memory_utilization=0.5)
    assert plan(asked).pool_bytes == int(102 * GIB * 0.5 - 3 * GIB) - 10 * GIB


def test_the_pool_is_never_negative() -> None:
    """Weights that are larger than the cards leave nothing, not less."""
    assert plan(request(), 200 * GIB) == Planning(0, 0, 0.0, 0)


def test_what_is_left_tells_by_how_much_weights_are_too_large() -> None:
    """Before it is cut off at nothing, the pool of a copy says how many bytes are missing."""
    memory = int(102 * GIB * 0.9 - 3 * GIB)
    assert left_for_cache_bytes(request(), 200 * GIB) == memory - 200 * GIB
    unknown = replace(card(), driver_memory_mib=None, total_memory_bytes=None)
    assert left_for_cache_bytes(replace(request(), gpu=unknown), GIB) is None


def test_copies_are_rounded_down_one_by_one() -> None:
    """Two copies of 1.9 requests each promise 2, not 3: replicas and data parallelism alike."""
    one = plan(request(), int(102 * GIB * 0.9 - 3 * GIB) - int(BLOCK * PER_REQUEST * 1.9))
    assert one.requests == 1
    for layout in (Layout(replicas=2), Layout(data_parallel_size=2)):
        asked = request(layout=layout)
        two = plan(asked, int(102 * GIB * 0.9 - 3 * GIB) - int(BLOCK * PER_REQUEST * 1.9))
        assert two.requests == 2
        assert two.max_concurrency == 2 * one.max_concurrency
        assert two.pool_bytes == 2 * one.pool_bytes
        assert two.kv_cache_size_tokens == 2 * one.kv_cache_size_tokens


def test_cards_of_a_group_pool_and_pay_for_the_weights_once() -> None:
    """Two tensor-parallel cards: both shares, weights once, a block costs both halves."""
    found = plan(request(layout=Layout(tensor_parallel_size=2)))
    assert found.pool_bytes == int(2 * (102 * GIB * 0.9 - 3 * GIB)) - 10 * GIB
    assert found.max_concurrency == found.pool_bytes // BLOCK / PER_REQUEST


def test_replicated_heads_cost_on_every_card() -> None:
    """Sixteen cards for eight heads: each head lies twice, so a block costs twice."""
    model = dense(num_attention_heads=16, num_key_value_heads=8)
    found = plan(request(model=model, layout=Layout(tensor_parallel_size=16)))
    assert found.max_concurrency == found.pool_bytes // (2 * BLOCK) / PER_REQUEST


def test_pipeline_stages_share_the_layers() -> None:
    """Two stages of two layers cost together what one card with four does."""
    found = plan(request(layout=Layout(pipeline_parallel_size=2)))
    assert found.pool_bytes == int(2 * (102 * GIB * 0.9 - 3 * GIB)) - 10 * GIB
    assert found.max_concurrency == found.pool_bytes // BLOCK / PER_REQUEST


def test_the_drivers_figure_counts_else_what_vllm_sees_else_what_is_given() -> None:
    """An override does not reach the rule while the card's own memory is known."""
    asked = request(gpu_total_memory_bytes=50 * GIB)
    assert planning_memory_bytes(asked) == 102 * GIB
    assert planning_memory_bytes(replace(asked, gpu=card(driver_mib=None))) == 100 * GIB
    unknown = replace(asked, gpu=card(total_gib=None, driver_mib=None))
    assert planning_memory_bytes(unknown) == 50 * GIB


def test_an_unknown_card_has_no_planning_figure() -> None:
    """Nothing is guessed."""
    asked = request(gpu=card(total_gib=None, driver_mib=None))
    assert planning_memory_bytes(asked) is None
    shape = cache_shape(asked, resolve_engine_args(asked))
    assert planning(asked, shape, 1000, 0) is None


@pytest.mark.parametrize(
    "layout",
    [
        Layout(),
        Layout(data_parallel_size=2),
        Layout(enable_expert_parallel=True),
        Layout(replicas=2, enable_expert_parallel=True),
    ],
)
def test_a_copy_holds_the_whole_checkpoint(layout: Layout) -> None:
    """Without experts spread over engines, every copy pays for all weights."""
    model = dense(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=512)
    asked = request(model=model, layout=layout)
    assert copy_weights_bytes(asked, resolve_engine_args(asked)) == 2 * 1024 * 4096


def test_experts_spread_over_engines_count_by_their_share() -> None:
    """With expert parallelism over two engines a copy holds half of the experts, else all."""
    groups = (
        TensorGroup("self_attn.q_proj", "attn", 0, 1024, 1024, sharding="column"),
        TensorGroup("mlp.experts.down_proj", "expert", 0, 1024, 512, 8, "expert_row"),
    )
    model = dense(tensors=groups, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=512)
    layout = Layout(data_parallel_size=2, enable_expert_parallel=True)
    asked = request(model=model, layout=layout)
    attention, experts = 2 * 1024 * 1024, 2 * 8 * 1024 * 512
    held = copy_weights_bytes(asked, resolve_engine_args(asked))
    assert held == pytest.approx(attention + experts / 2, rel=0.02)
    plain = replace(asked, layout=Layout(data_parallel_size=2))
    assert copy_weights_bytes(plain, resolve_engine_args(plain)) == attention + experts
    two = replace(asked, layout=replace(layout, tensor_parallel_size=2))
    held = copy_weights_bytes(two, resolve_engine_args(two))
    assert held == pytest.approx(attention + experts / 2, rel=0.02)
