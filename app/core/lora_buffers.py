"""LoRA buffers: what `--enable-lora` allocates beside the weights."""

from __future__ import annotations

from functools import lru_cache

from app.core.layout import Layout
from app.core.model_spec import ModelSpec, TensorGroup
from app.core.pipeline_stages import stages_by_layer
from app.core.shards import shard
from app.core.storage_schemes import DTYPE_BYTES

_ADAPTED = frozenset({"attn", "mlp", "expert", "shared", "ssm", "router", "embed", "lm_head"})


@lru_cache(maxsize=512)
def lora_bytes_per_stage(
    model: ModelSpec, layout: Layout, max_loras: int, max_lora_rank: int, dtype: str
) -> tuple[int, ...]:
    """Bytes of stacked A and B matrices on one rank of each pipeline stage.

    Every linear layer gets max_loras x max_lora_rank x (in_features + out_features) elements of its
    own share; embedding and head are not split. Source: vllm/lora/layers/base_linear.py,
    column_parallel_linear.py, fused_moe.py, logits_processor.py `create_lora_weights` (0.32.0).
    """
    totals = [0] * layout.pipeline_parallel_size
    stages_of = stages_by_layer(model.num_hidden_layers, len(totals))
    for group in model.tensors:
        if group.part == "model" and group.module in _ADAPTED and group.in_features > 1:
            for stage in stages_of[group.layer]:
                totals[stage] += _features(group, layout)
    element_bytes = max_loras * max_lora_rank * DTYPE_BYTES[dtype]
    return tuple(features * element_bytes for features in totals)


def _features(group: TensorGroup, layout: Layout) -> int:
    if group.sharding == "vocab":
        return group.out_features + group.in_features
    share = shard(group, layout)
    return share.count * (share.out_features + share.in_features)
