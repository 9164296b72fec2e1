"""Padding of expert matrices: what the kernel of a card wants beyond the model's own sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from app.core.card_kind import CardKind
from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.releases import Release
from app.core.shards import Shard
from app.core.storage_schemes import UNQUANTIZED, StorageScheme
from app.core.units import ceil_div

MXFP4 = "mxfp4"
FP8_BLOCK_SCHEMES = frozenset({"fp8_block", "fp8_block_f32"})
SMALLEST_REFINED_BLOCK = 32


@dataclass(frozen=True, slots=True)
class ExpertPadding:
    """Multiples that hidden size and a rank's intermediate size are rounded up to."""

    hidden_multiple: int = 1
    intermediate_multiple: int = 1


def expert_padding(scheme: str, card: CardKind, hidden_act: str, release: Release) -> ExpertPadding:
    """Pick the multiples for a storage scheme on a card, FlashInfer present.

    MXFP4: Hopper runs Triton's kernel, the SM100 family TRT-LLM's, all others Marlin.
    Source: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py
    `mxfp4_round_up_hidden_size_and_intermediate_size`, oracle/unquantized.py
    `unquantized_round_up_hidden_size_and_intermediate_size` (0.32.0).
    """
    if scheme == MXFP4:
        if card == "hopper":
            return ExpertPadding(1, 64)
        multiple = release.sm100_mxfp4_expert_multiple if card == "sm100" else 128
        return ExpertPadding(256, multiple)
    if scheme == UNQUANTIZED and card == "sm100" and hidden_act != "swigluoai":
        return ExpertPadding(1, release.sm100_bf16_expert_multiple)
    return ExpertPadding()


def least_expert(group: TensorGroup, layout: Layout, release: Release) -> TensorGroup:
    """Widen an expert until every rank of tensor parallelism holds its least share.

    Source: vllm/models/kimi_k3/nvidia/model.py `min_moe_intermediate_per_partition` (0.28.0).
    """
    tp, least = layout.tensor_parallel_size, group.least_share
    if not least or tp == 1 or layout.enable_expert_parallel or not release.expert_least_share:
        return group
    if group.sharding == "expert_column" and group.out_features // tp < least:
        return replace(group, out_features=least * tp)
    if group.sharding == "expert_row" and group.in_features // tp < least:
        return replace(group, in_features=least * tp)
    return group


def pad_expert(share: Shard, sharding: str, padding: ExpertPadding) -> Shard:
    """Round a rank's expert matrix (or bias, in_features 1) up to the kernel's multiples."""
    rows, columns = padding.hidden_multiple, padding.intermediate_multiple
    if sharding == "expert_column":
        rows, columns = columns, rows
    into = share.in_features
    return replace(
        share,
        out_features=ceil_div(share.out_features, rows) * rows,
        in_features=into if into == 1 else ceil_div(into, columns) * columns,
    )


def refined_scheme(scheme: StorageScheme, share: Shard, sharding: str) -> StorageScheme:
    """Finer FP8 scale blocks where a rank's share does not hold whole 128 x 128 blocks.

    Source: vllm/model_executor/layers/fused_moe/oracle/fp8.py `refine_fp8_moe_block_shape`.
    """
    size, hidden = share.out_features, share.in_features
    if sharding == "expert_row":
        size, hidden = hidden, size
    if size % scheme.block_rows == 0:
        return scheme
    block = math.gcd(scheme.block_rows, scheme.block_columns, size, hidden)
    if block < SMALLEST_REFINED_BLOCK:
        return scheme
    return replace(scheme, block_rows=block, block_columns=block)
