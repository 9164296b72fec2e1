"""Plans the cache of every layer: backend, block size, pages, and the pipeline stage it lies on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.core.backend_choice import (
    BLOCK_SPARSE,
    INDEXER,
    choose_backend,
    mla_cache_dtype,
)
from app.core.backends import AttentionBackend
from app.core.block_size import (
    DEFAULT_BLOCK_SIZE,
    common_block_size,
    hybrid_block_size,
    mixed_dtype_block_size,
)
from app.core.kv_dtypes import ELEMENT_BYTES, head_bytes, is_packed, latent_bytes
from app.core.kv_spec import KvSpec
from app.core.layer_cache import (
    CacheContext,
    attention_spec,
    checkpoint_alignment,
    index_key_spec,
    latent_specs,
    state_bytes,
    state_spec,
)
from app.core.model_spec import (
    AttentionSpec,
    CacheSpec,
    MlaSpec,
    ModelSpec,
    PackedSpec,
    StateSpec,
)
from app.core.packed_layer import PACKED_BLOCK_SIZE, packed_cache_dtype, packed_specs
from app.core.stages import stage_of_layers

_BOUNDARY_LAYERS = 2


@dataclass(frozen=True, slots=True)
class PlannedCache:
    """One cache of one layer before its block size is known."""

    spec: CacheSpec
    stage: int
    cache_dtype: str
    backend: AttentionBackend | None


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """The cache specs of all layers on one rank; `stages[i]` is the pipeline stage of `specs[i]`.

    `backends` are the names of the attention backends in the order of the layers.
    """

    specs: tuple[KvSpec, ...]
    stages: tuple[int, ...]
    backends: tuple[str, ...]
    packs_mixed_pages: bool


def plan_layers(model: ModelSpec, context: CacheContext) -> LayerPlan:
    """Plan every layer, drafts last. Raises Refusal where no backend can serve a layer."""
    caches = tuple(_caches(model, context))
    backends = _distinct_backends(caches)
    block_size, padded = _block_size(model, context, caches, backends)
    specs, stages = [], []
    for cache in caches:
        for spec in _specs(cache, context, block_size, padded):
            specs.append(spec)
            stages.append(cache.stage)
    return LayerPlan(
        tuple(specs),
        tuple(stages),
        tuple(backend.name for backend in backends),
        any(isinstance(cache.spec, PackedSpec) for cache in caches),
    )


def _caches(model: ModelSpec, context: CacheContext) -> Iterator[PlannedCache]:
    """List the caches of all layers with their backends; equal layers are looked up once."""
    known: dict[tuple[CacheSpec, str], tuple[str, AttentionBackend | None]] = {}
    stages = stage_of_layers(len(model.layers), context.pipeline_parallel_size)
    drafts = (model.mtp_layers or model.layers[-1:])[: context.draft_layers]
    layers = [*zip(model.layers, stages, strict=True), *((d, stages[-1]) for d in drafts)]
    for index, (layer, stage) in enumerate(layers):
        wanted = _cache_dtype(model, context, index)
        for spec in (layer.cache, layer.beside):
            if spec is None:
                continue
            if (spec, wanted) not in known:
                known[spec, wanted] = _backend(model, spec, context, wanted)
            cache_dtype, backend = known[spec, wanted]
            yield PlannedCache(spec, stage, cache_dtype, backend)


def _cache_dtype(model: ModelSpec, context: CacheContext, index: int) -> str:
    """TurboQuant leaves the first and last two layers of a model without states unquantised."""
    if not is_packed(context.cache_dtype) or _has_state(model):
        return context.cache_dtype
    edge = min(_BOUNDARY_LAYERS, len(model.layers) // 2)
    inside = edge <= index < len(model.layers) - edge
    return context.cache_dtype if inside else "auto"


def _has_state(model: ModelSpec) -> bool:
    return any(isinstance(layer.cache, StateSpec) for layer in model.layers)


def _backend(
    model: ModelSpec, spec: CacheSpec, context: CacheContext, cache_dtype: str
) -> tuple[str, AttentionBackend | None]:
    if isinstance(spec, AttentionSpec):
        return cache_dtype, choose_backend(model, spec, context, cache_dtype)
    if isinstance(spec, MlaSpec):
        backend = choose_backend(model, spec, context, cache_dtype)
        return mla_cache_dtype(backend, cache_dtype), backend
    if isinstance(spec, PackedSpec):
        return packed_cache_dtype(context, cache_dtype), None
    return cache_dtype, None


def _distinct_backends(caches: tuple[PlannedCache, ...]) -> list[AttentionBackend]:
    """List the attention backends in the order of the layers, an indexer before its layer."""
    found: list[AttentionBackend] = []
    for cache in caches:
        if isinstance(cache.spec, MlaSpec) and cache.spec.index_head_dim and INDEXER not in found:
            found.append(INDEXER)
        if cache.backend is not None and cache.backend not in found:
            found.append(cache.backend)
    return found


def _block_size(
    model: ModelSpec,
    context: CacheContext,
    caches: tuple[PlannedCache, ...],
    backends: list[AttentionBackend],
) -> tuple[int, int | None]:
    """Agree on a block size; return it with the bytes that pages of states are padded to."""
    if any(isinstance(cache.spec, PackedSpec) for cache in caches):
        return PACKED_BLOCK_SIZE, None
    if not backends:
        return context.user_block_size or DEFAULT_BLOCK_SIZE, None
    kernels = [backend.block_sizes for backend in backends]
    block_size = context.user_block_size or common_block_size(kernels)
    states = {cache.spec for cache in caches if isinstance(cache.spec, StateSpec)}
    if states:
        per_token = _bytes_per_token(context, caches)
        state = max(state_bytes(spec, context) for spec in states)
        block_size = hybrid_block_size(
            block_size,
            kernels,
            state,
            per_token,
            use_mla=any(isinstance(cache.spec, MlaSpec) for cache in caches),
            checkpoint_alignment=_block_alignment(states, context),
        )
        return block_size, block_size * per_token
    if is_packed(context.cache_dtype):
        heads = context.kv_heads(model.num_key_value_heads)
        wide = 2 * heads * model.head_dim
        block_size = mixed_dtype_block_size(
            block_size, kernels[0], wide, wide * ELEMENT_BYTES[context.dtype]
        )
    return block_size, None


def _bytes_per_token(context: CacheContext, caches: tuple[PlannedCache, ...]) -> int:
    """Bytes of one token in the first attention layer, which recurrent layers align to."""
    for cache in caches:
        spec = cache.spec
        if isinstance(spec, AttentionSpec):
            size = head_bytes(context.cache_dtype, context.dtype, spec.head_size, spec.head_size_v)
            return context.kv_heads(spec.num_kv_heads) * size
        if isinstance(spec, MlaSpec):
            width = spec.kv_lora_rank + spec.qk_rope_head_dim
            return latent_bytes(context.cache_dtype, context.dtype, width)
    return 1


def _block_alignment(states: set[StateSpec], context: CacheContext) -> int:
    """Grid that checkpoints inside a prefill keep to, from the release that aligns blocks to it."""
    if context.mamba_cache_mode != "align" or context.release.gdn_block_alignment <= 1:
        return 1
    alignments = [checkpoint_alignment(spec, context) for spec in states]
    return max(alignments) if all(alignments) else 1


def _specs(
    cache: PlannedCache, context: CacheContext, block_size: int, padded: int | None
) -> tuple[KvSpec, ...]:
    spec = cache.spec
    if isinstance(spec, StateSpec):
        own = block_size if context.mamba_cache_mode == "align" else 0
        size = state_bytes(spec, context)
        return (state_spec(spec, context, own, padded if padded and padded != size else None),)
    if isinstance(spec, PackedSpec):
        return packed_specs(spec, context, block_size, cache.cache_dtype)
    if isinstance(spec, MlaSpec):
        return latent_specs(spec, context, block_size, cache.cache_dtype)
    backend = cache.backend or BLOCK_SPARSE
    attention = attention_spec(spec, context, backend, block_size, cache.cache_dtype)
    if spec.index_head_dim is None:
        return (attention,)
    return attention, index_key_spec(spec.index_head_dim, context, block_size)
