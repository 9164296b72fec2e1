"""How far expert matrices grow beyond the model's own sizes."""

from dataclasses import replace

import pytest

from app.core.card_kind import CardKind, card_kind
from app.core.expert_padding import (
    ExpertPadding,
    expert_padding,
    least_expert,
    pad_expert,
    refined_scheme,
)
from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.shards import Shard
from app.core.storage_schemes import STORAGE_SCHEMES
from tests.core.memory_case import shipped

UP = TensorGroup("up_proj", "expert", 0, 512, 3072, 8, "expert_column", least_share=256)
DOWN = TensorGroup("down_proj", "expert", 0, 3072, 512, 8, "expert_row", least_share=256)
NEWEST = shipped("0.33.0")


def test_a_rank_holds_its_least_share() -> None:
    """512 over four cards are 128, below 256: padded to 1,024. Over two cards nothing is padded."""
    four, two = Layout(tensor_parallel_size=4), Layout(tensor_parallel_size=2)
    assert least_expert(UP, four, NEWEST) == replace(UP, out_features=1024)
    assert least_expert(DOWN, four, NEWEST) == replace(DOWN, in_features=1024)
    for group in (UP, DOWN):
        assert least_expert(group, two, NEWEST) is group


@pytest.mark.parametrize(
    ("group", "layout", "version"),
    [
        (replace(UP, least_share=0), Layout(tensor_parallel_size=4), "0.33.0"),
        (UP, Layout(), "0.33.0"),
        (UP, Layout(tensor_parallel_size=4, enable_expert_parallel=True), "0.33.0"),
        (UP, Layout(tensor_parallel_size=4), "0.26.0"),
        (replace(UP, sharding="expert"), Layout(tensor_parallel_size=4), "0.33.0"),
    ],
)
def test_nothing_is_widened_without_need(group: TensorGroup, layout: Layout, version: str) -> None:
    """No share asked for, one card, whole experts, a release before it, a matrix left whole."""
    assert least_expert(group, layout, shipped(version)) is group


@pytest.mark.parametrize(
    ("scheme", "card", "act", "padding"),
    [
        ("mxfp4", "hopper", "silu", ExpertPadding(1, 64)),
        ("mxfp4", "sm100", "silu", ExpertPadding(256, NEWEST.sm100_mxfp4_expert_multiple)),
        ("mxfp4", "other", "silu", ExpertPadding(256, 128)),
        ("mxfp4", "before_ada", "silu", ExpertPadding(256, 128)),
        ("none", "sm100", "silu", ExpertPadding(1, NEWEST.sm100_bf16_expert_multiple)),
        ("none", "sm100", "swigluoai", ExpertPadding()),
        ("none", "hopper", "silu", ExpertPadding()),
        ("fp8_block", "sm100", "silu", ExpertPadding()),
    ],
)
def test_the_kernel_of_a_card_sets_the_multiples(
    scheme: str, card: CardKind, act: str, padding: ExpertPadding
) -> None:
    """MXFP4: Triton, TRT-LLM or Marlin; 16 bit on SM100: TRT-LLM; everything else as it is."""
    assert expert_padding(scheme, card, act, NEWEST) == padding


def test_both_sides_are_rounded_up_and_a_bias_keeps_its_one_column() -> None:
    """Hidden 2,880 to 3,072 and intermediate 720 to 768, each on the side of its matrix."""
    padding = ExpertPadding(256, 128)
    assert pad_expert(Shard(720, 2880, 4), "expert_column", padding) == Shard(768, 3072, 4)
    assert pad_expert(Shard(2880, 720, 4), "expert_row", padding) == Shard(3072, 768, 4)
    assert pad_expert(Shard(720, 1, 4), "expert_column", padding) == Shard(768, 1, 4)


def test_blocks_of_scales_become_as_fine_as_a_share_asks() -> None:
    """Shares of 192 take blocks of 64; of 256 keep 128; of 48 stay, which vLLM refuses anyway."""
    block = STORAGE_SCHEMES["fp8_block"]
    finer = refined_scheme(block, Shard(192, 2048, 1), "expert_column")
    assert (finer.block_rows, finer.block_columns) == (64, 64)
    assert refined_scheme(block, Shard(2048, 192, 1), "expert_row") == finer
    assert refined_scheme(block, Shard(256, 2048, 1), "expert_column") is block
    assert refined_scheme(block, Shard(48, 2048, 1), "expert_column") is block


def test_kinds_of_cards() -> None:
    """By compute capability; one that is unknown is none of the special ones."""
    kinds = {(8, 0): "before_ada", (8, 9): "other", (9, 0): "hopper", (10, 3): "sm100",
             (12, 0): "other", None: "other"}  # fmt: skip
    assert {capability: card_kind(capability) for capability in kinds} == kinds
