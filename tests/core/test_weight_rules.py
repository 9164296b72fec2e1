"""Which storage and which split of weights vLLM refuses, on matrices divided by hand."""

from dataclasses import replace

import pytest

from app.core.checkpoint import Checkpoint, Quantization
from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.reasons import Reason, Refusal
from app.core.request import SizingRequest
from app.core.weight_rules import check_weights
from tests.core.memory_case import card, dense, request, shipped

PARTS = frozenset({"model"})
UP = TensorGroup("mlp.up_proj", "mlp", 0, 4096, 1024, sharding="column", quantizable=True)
DOWN = TensorGroup("mlp.down_proj", "mlp", 0, 1024, 4096, sharding="row", quantizable=True)
EXPERT = TensorGroup(
    "mlp.experts.up_proj", "expert", 0, 768, 2048, 8, "expert_column", quantizable=True
)
TABLE = TensorGroup("embed_tokens", "embed", -1, 4100, 1024, sharding="vocab")


def asked(
    *tensors: TensorGroup,
    method: str | None = None,
    scheme: str = "",
    layout: Layout | None = None,
    version: str = "0.32.0",
) -> SizingRequest:
    """Ask for a model of these tensors, all quantizable ones stored alike."""
    schemes = (("mlp", scheme), ("expert", scheme)) if scheme else ()
    return request(
        model=dense(tensors=tensors),
        checkpoint=Checkpoint("maker/model", "x", Quantization(method, schemes)),
        layout=layout or Layout(),
        release=shipped(version),
    )


def over(cards: int) -> Layout:
    """Return tensor parallelism over so many cards."""
    return Layout(tensor_parallel_size=cards)


def refused(start: SizingRequest) -> Reason:
    """Return why vLLM refuses these weights."""
    with pytest.raises(Refusal) as caught:
        check_weights(start, PARTS)
    return caught.value.reason


def test_a_method_the_release_does_not_know_is_refused() -> None:
    """MXFP4 came with 0.10.1; before, its name alone is refused, in no words of vLLM's."""
    start = asked(UP, method="mxfp4", scheme="mxfp4")
    check_weights(start, PARTS)
    reason = refused(replace(start, release=shipped("0.9.0")))
    assert (reason.code, reason.numbers) == (
        "quantization_not_supported",
        (("method", "mxfp4"),),
    )


def test_a_card_below_the_methods_capability_is_refused_and_an_unknown_one_is_not() -> None:
    """AWQ needs 7.5 in 0.32.0: 7.0 is refused with both numbers, a card without one passes."""
    start = asked(UP, method="awq", scheme="awq")
    smallest = dict(start.release.quantization_min_capability)["awq"]
    old = replace(start, gpu=replace(card(), compute_capability=(7, 0)))
    numbers = dict(refused(old).numbers)
    assert (numbers["min_capability"], numbers["capability"]) == (smallest, 70)
    check_weights(replace(old, gpu=replace(card(), compute_capability=None)), PARTS)
    check_weights(replace(old, gpu=replace(card(), compute_capability=divmod(smallest, 10))), PARTS)


@pytest.mark.parametrize("tensor", [UP, DOWN])
def test_a_side_that_does_not_divide_is_refused(tensor: TensorGroup) -> None:
    """4,096 features over three cards leave a rest, over four none."""
    reason = refused(asked(tensor, layout=over(3)))
    assert reason.vllm_error == "4096 is not divisible by 3"
    check_weights(asked(tensor, layout=over(4)), PARTS)


def test_a_vocabulary_is_padded_before_it_is_divided() -> None:
    """4,100 rows are padded to 4,160, which five cards share and three do not."""
    assert refused(asked(TABLE, layout=over(3))).vllm_error == "4160 is not divisible by 3"
    check_weights(asked(TABLE, layout=over(5)), PARTS)


def test_blocks_of_fp8_may_not_be_cut() -> None:
    """4,096 over 64 cards are 64 rows or columns of a block of 128; over 32 cards whole ones."""
    reason = refused(asked(UP, method="fp8", scheme="fp8_block", layout=over(64)))
    assert reason.vllm_error == (
        "Weight output_partition_size = 64 is not divisible by weight quantization block_n = 128."
    )
    reason = refused(asked(DOWN, method="fp8", scheme="fp8_block", layout=over(64)))
    assert reason.vllm_error == (
        "Weight input_size_per_partition = 64 is not divisible by weight quantization "
        "block_k = 128."
    )
    for tensor in (UP, DOWN):
        check_weights(asked(tensor, method="fp8", scheme="fp8_block", layout=over(32)), PARTS)


def test_groups_of_scales_may_not_be_cut() -> None:
    """AWQ keeps a scale for 128 inputs: 64 of them on a card are refused, other sides are free."""
    start = asked(DOWN, method="awq", scheme="awq", layout=over(64))
    assert "group_size=128" in refused(start).vllm_error.replace(" = ", "=")
    check_weights(asked(UP, method="awq", scheme="awq", layout=over(64)), PARTS)
    check_weights(asked(DOWN, method="awq", scheme="awq_g64", layout=over(64)), PARTS)
    check_weights(asked(DOWN, method="awq", scheme="awq_channel", layout=over(64)), PARTS)
    check_weights(asked(DOWN, layout=over(64)), PARTS)


def test_the_text_is_that_of_a_row_where_both_sides_fail() -> None:
    """Merged columns are allowed more, so vLLM's error is about the row."""
    assert (
        "input_size_per_partition"
        in refused(asked(UP, DOWN, method="fp8", scheme="fp8_block", layout=over(64))).vllm_error
    )


def test_experts_are_split_over_the_cards_of_all_engines() -> None:
    """768 over 5 cards leave a rest; whole experts instead of shares divide nothing."""
    reason = refused(asked(EXPERT, layout=Layout(data_parallel_size=5)))
    assert (reason.code, reason.vllm_error) == (
        "expert_split_not_supported",
        "768 is not divisible by 5",
    )
    whole = Layout(data_parallel_size=5, enable_expert_parallel=True)
    check_weights(asked(EXPERT, layout=whole), PARTS)


def test_blocks_of_an_expert_are_made_finer_down_to_32() -> None:
    """Shares of 192 and 96 come to blocks of 64 and 32 from 0.29.0; of 48 to 16, refused."""
    for tp in (2, 4, 8):
        check_weights(asked(EXPERT, method="fp8", scheme="fp8_block", layout=over(tp)), PARTS)
    reason = refused(asked(EXPERT, method="fp8", scheme="fp8_block", layout=over(16)))
    assert reason.code == "expert_split_not_supported"
    assert dict(reason.numbers) == {"size": 48, "block": 128}
    before = asked(EXPERT, method="fp8", scheme="fp8_block", version="0.28.0")
    check_weights(replace(before, layout=over(2)), PARTS)
    early = refused(replace(before, layout=over(4)))
    assert dict(early.numbers) == {"size": 192, "block": 128}


def test_shared_experts_are_whole_where_experts_run_sequence_parallel() -> None:
    """Expert parallelism over two engines of three cards divides no shared expert."""
    shared = replace(
        UP, name="mlp.shared_expert.up_proj", module="shared", sharding="shared_column"
    )
    layout = over(3)
    assert refused(asked(shared, layout=layout)).vllm_error == "4096 is not divisible by 3"
    spread = replace(layout, data_parallel_size=2, enable_expert_parallel=True)
    check_weights(asked(shared, layout=spread), PARTS)
