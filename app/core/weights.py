"""Weights: bytes of a checkpoint in its files, and on each rank once vLLM has loaded them."""

from __future__ import annotations

from functools import lru_cache

from app.core.checkpoint import Checkpoint, Quantization
from app.core.engine import ResolvedEngineArgs
from app.core.expert_padding import (
    FP8_BLOCK_SCHEMES,
    expert_padding,
    pad_expert,
    refined_scheme,
)
from app.core.layout import Layout
from app.core.lora_buffers import lora_bytes_per_stage
from app.core.model_spec import EVERY_STAGE, FIRST_STAGE, LAST_STAGE, ModelSpec, TensorGroup
from app.core.pipeline_stages import stage_layers
from app.core.request import SizingRequest
from app.core.shards import Shard, shard
from app.core.storage_schemes import STORAGE_SCHEMES, UNQUANTIZED, StorageScheme, unquantized
from app.core.units import GIB

Capability = tuple[int, int] | None

# MLA keeps its up-projection a second time in 16 bit, absorbed into q and o, when the weight
# itself is quantised: vllm/model_executor/layers/attention/mla_attention.py
# `process_weights_after_loading` (0.32.0).
ABSORBED = "self_attn.kv_b_proj"
ABSORBED_ELEMENT_BYTES = 2

_SHARED_WITH_TARGET = frozenset({"mtp_shared"})


def checkpoint_bytes(model: ModelSpec, checkpoint: Checkpoint) -> int:
    """Bytes of the tensors in a checkpoint's files, from shapes and storage schemes alone."""
    parts = {"model", *checkpoint.includes}
    if "mtp" in parts:
        parts |= _SHARED_WITH_TARGET
    return _stored_bytes(model, checkpoint.quantization, frozenset(parts))


def weights_bytes_per_rank(request: SizingRequest, resolved: ResolvedEngineArgs) -> tuple[int, ...]:
    """Bytes one rank of each pipeline stage holds after loading: what `Model loading took` counts.

    LoRA buffers and what MLA keeps beside its parameters are in; what `--cpu-offload-gb` takes
    off the card is out.
    """
    stages = _loaded_bytes(
        request.model,
        request.checkpoint.quantization,
        request.layout,
        request.gpu.compute_capability,
        loaded_parts(request, resolved),
        resolved.dtype,
        True,  # noqa: FBT003 - lru_cache keys on positions
    )
    if resolved.enable_lora:
        buffers = lora_bytes_per_stage(
            request.model, request.layout, resolved.max_loras, resolved.max_lora_rank, resolved.dtype
        )
        stages = tuple(size + extra for size, extra in zip(stages, buffers, strict=True))
    offloaded = int(resolved.cpu_offload_gb * GIB)
    return tuple(max(0, size - offloaded) for size in stages)


def parameter_bytes_per_rank(
    request: SizingRequest, resolved: ResolvedEngineArgs
) -> tuple[int, ...]:
    """Bytes of parameters and buffers as created, before vLLM processes the loaded weights."""
    return _loaded_bytes(
        request.model,
        request.checkpoint.quantization,
        request.layout,
        request.gpu.compute_capability,
        loaded_parts(request, resolved),
        resolved.dtype,
        False,  # noqa: FBT003 - lru_cache keys on positions
    )


def loaded_parts(request: SizingRequest, resolved: ResolvedEngineArgs) -> frozenset[str]:
    """Parts of the model that this start loads (TensorGroup.part)."""
    parts = {"model", "runtime"}
    if resolved.speculative_method == "mtp":
        parts.add("mtp")
    if not resolved.language_model_only:
        parts |= {"vision", "audio"} & request.checkpoint.includes
    return frozenset(parts)


def scheme_name(group: TensorGroup, quantization: Quantization) -> str:
    """Storage scheme of a tensor group: by layer and name, by name, by part, by class."""
    if not group.quantizable:
        return UNQUANTIZED
    by_name, schemes = dict(quantization.by_name), dict(quantization.schemes)
    for table, key in (
        (by_name, f"{group.layer}.{group.name}"),
        (by_name, group.name),
        (schemes, group.part if group.part != "model" else ""),
        (schemes, group.module),
    ):
        if key in table:
            return table[key]
    return UNQUANTIZED


@lru_cache(maxsize=1024)
def _stored_bytes(model: ModelSpec, quantization: Quantization, parts: frozenset[str]) -> int:
    total = 0
    for group in model.tensors:
        if group.part in parts:
            scheme = _stored_scheme(group, scheme_name(group, quantization), model.dtype)
            total += group.count * scheme.stored_bytes(group.out_features, group.in_features)
    return total


@lru_cache(maxsize=4096)
def _loaded_bytes(
    model: ModelSpec,
    quantization: Quantization,
    layout: Layout,
    capability: Capability,
    parts: frozenset[str],
    dtype: str,
    absorbed: bool,  # noqa: FBT001 - lru_cache keys on positions
) -> tuple[int, ...]:
    totals = [0] * layout.pipeline_parallel_size
    stages = stage_layers(model.num_hidden_layers, layout.pipeline_parallel_size)
    stage_of = {layer: stage for stage, layers in enumerate(stages) for layer in layers}
    for group in model.tensors:
        if group.part not in parts:
            continue
        name = scheme_name(group, quantization)
        size = _rank_bytes(group, name, model.hidden_act, layout, capability, dtype)
        if absorbed and group.name == ABSORBED and name != UNQUANTIZED:
            share = shard(group, layout)
            size += share.out_features * share.in_features * ABSORBED_ELEMENT_BYTES
        for stage in _stages(group, stage_of, len(totals), tied=model.tie_word_embeddings):
            totals[stage] += size
    return tuple(totals)


def _rank_bytes(
    group: TensorGroup,
    name: str,
    hidden_act: str,
    layout: Layout,
    capability: Capability,
    dtype: str,
) -> int:
    share = shard(group, layout)
    scheme = _loaded_scheme(group, name, dtype)
    if group.module == "expert":
        share = pad_expert(share, group.sharding, expert_padding(name, capability, hidden_act))
        if name in FP8_BLOCK_SCHEMES:
            scheme = refined_scheme(scheme, share, group.sharding)
    return _share_bytes(scheme, share)


def _share_bytes(scheme: StorageScheme, share: Shard) -> int:
    return share.count * scheme.loaded_bytes(share.out_features, share.in_features)


def _loaded_scheme(group: TensorGroup, name: str, dtype: str) -> StorageScheme:
    if group.loaded_dtype:
        return unquantized(group.loaded_dtype)
    return _stored_scheme(group, name, dtype)


def _stored_scheme(group: TensorGroup, name: str, dtype: str) -> StorageScheme:
    if name == UNQUANTIZED:
        return unquantized(group.dtype or dtype)
    return STORAGE_SCHEMES[name]


def _stages(
    group: TensorGroup, stage_of: dict[int, int], stages: int, *, tied: bool
) -> tuple[int, ...]:
    last = stages - 1
    if group.layer == EVERY_STAGE:
        return tuple(range(stages))
    if group.layer == FIRST_STAGE:
        return (0, last) if tied and last and group.module == "embed" else (0,)
    if group.layer == LAST_STAGE:
        return (last,)
    return (stage_of[group.layer],)
