"""LoRA buffers: what `--enable-lora` allocates beside the weights."""

from __future__ import annotations

from functools import lru_cache

from app.core.layout import Layout
from app.core.model_spec import EVERY_STAGE, FIRST_STAGE, LAST_STAGE, ModelSpec, TensorGroup
from app.core.pipeline_stages import stage_layers
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
    stages = layout.pipeline_parallel_size
    totals = [0] * stages
    held = stage_layers(model.num_hidden_layers, stages)
    stages_of: dict[int, tuple[int, ...]]
    stages_of = {layer: (stage,) for stage, layers in enumerate(held) for layer in layers}
    stages_of |= {FIRST_STAGE: (0,), LAST_STAGE: (stages - 1,)}
    stages_of |= {EVERY_STAGE: tuple(range(stages))}
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
