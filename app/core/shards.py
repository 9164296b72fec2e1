"""The share of a tensor that one rank holds."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.units import ceil_div

# vllm/model_executor/layers/vocab_parallel_embedding.py `DEFAULT_VOCAB_PADDING_SIZE` (0.32.0)
VOCAB_PADDING = 64


@dataclass(frozen=True, slots=True)
class Shard:
    """`count` matrices [out_features, in_features] on one rank."""

    out_features: int
    in_features: int
    count: int


def shard(group: TensorGroup, layout: Layout) -> Shard:
    """Split a tensor group over the ranks of one engine; sizes that do not divide round up.

    Experts are split over the cards of all data-parallel engines, expert parallelism or not.
    Source: vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py,
    fused_moe/config.py `FusedMoEParallelConfig` (0.32.0).
    """
    tp = layout.tensor_parallel_size
    out, into, count = group.out_features, group.in_features, group.count
    sharding = group.sharding
    if sharding in {"shared_column", "shared_row"} and sequence_parallel(layout):
        return Shard(out, into, count)
    match sharding:
        case "column" | "shared_column":
            return Shard(ceil_div(out, tp), into, count)
        case "row" | "shared_row":
            return Shard(out, ceil_div(into, tp), count)
        case "kv_heads":
            units = max(1, group.shard_units)
            return Shard(out // units * max(1, ceil_div(units, tp)), into, count)
        case "vocab":
            padded = ceil_div(out, VOCAB_PADDING) * VOCAB_PADDING
            return Shard(ceil_div(padded, tp), into, count)
        case "expert" | "expert_column" | "expert_row":
            return _expert_shard(group, layout)
        case _:
            return Shard(out, into, count)


def split_of(layout: Layout) -> Layout:
    """What of a layout decides how tensors are split: no pipeline, no copies, no split cache."""
    return Layout(
        tensor_parallel_size=layout.tensor_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        enable_expert_parallel=layout.enable_expert_parallel,
    )


def sequence_parallel(layout: Layout) -> bool:
    """True where vLLM runs experts sequence parallel.

    Source: vllm/config/parallel.py `use_sequence_parallel_moe` (0.32.0, default all-to-all).
    """
    return (
        layout.enable_expert_parallel
        and layout.tensor_parallel_size > 1
        and layout.data_parallel_size > 1
    )


def expert_ranks(layout: Layout) -> int:
    """Cards that the experts of one model are split over."""
    return layout.tensor_parallel_size * layout.data_parallel_size


def _expert_shard(group: TensorGroup, layout: Layout) -> Shard:
    ranks = expert_ranks(layout)
    out, into, count = group.out_features, group.in_features, group.count
    if layout.enable_expert_parallel:
        return Shard(out, into, ceil_div(count, ranks))
    if group.sharding == "expert_column":
        return Shard(ceil_div(out, ranks), into, count)
    if group.sharding == "expert_row":
        return Shard(out, ceil_div(into, ranks), count)
    return Shard(out, into, count)
