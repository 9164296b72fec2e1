"""Plans the cache of every layer: backend, block size, pages, and the pipeline stage it lies on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.core.attention_layer import BLACKWELL, AttentionBackend
from app.core.backend_choice import (
    BLOCK_SPARSE,
    INDEXER,
    choose_backend,
    mla_cache_dtype,
    sparse_cache_dtype,
)
from app.core.block_agreement import BlockSizes, PlannedCache, agree_on_blocks
from app.core.kv_dtypes import is_packed
from app.core.kv_spec import KvSpec
from app.core.layer_cache import (
    CacheContext,
    attention_spec,
    index_key_spec,
    latent_specs,
    state_spec,
)
from app.core.model_spec import AttentionSpec, CacheSpec, MlaSpec, ModelSpec, PackedSpec, StateSpec
from app.core.packed_layer import packed_cache_dtype, packed_specs
from app.core.refusals import refuse
from app.core.stages import stage_of_layers

_BOUNDARY_LAYERS = 2
_DENSE_LAYOUTS, _PACKED_LAYOUTS = ["LBHNC", "BLHNC"], ["LBNHC"]


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
    _check_packed_dtype(model, context, backends)
    sizes = agree_on_blocks(context, caches, backends)
    specs, stages = [], []
    known: dict[tuple[CacheSpec, str], tuple[KvSpec, ...]] = {}
    for cache in caches:
        key = (cache.spec, cache.cache_dtype)
        if key not in known:
            known[key] = _specs(cache, context, sizes)
        for spec in known[key]:
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
        cache_dtype = sparse_cache_dtype(spec, context, cache_dtype)
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


def _check_packed_dtype(
    model: ModelSpec, context: CacheContext, backends: list[AttentionBackend]
) -> None:
    """Refuse TurboQuant where its kernels cannot share a cache with those of other layers.

    Source: vllm/v1/attention/backends/utils.py `get_supported_kv_cache_layouts`,
    vllm/model_executor/layers/attention/chunked_local_attention.py.
    """
    if not context.cache_dtype.startswith("turboquant_"):
        return
    release = context.release
    chunked = any(
        isinstance(layer.cache, AttentionSpec) and layer.cache.kind == "chunked_local"
        for layer in model.layers
    )
    if chunked and release.error("turboquant_chunked"):
        raise refuse(
            release,
            "kv_dtype_not_supported",
            "turboquant_chunked",
            kv_cache_dtype=context.cache_dtype,
        )
    names = [backend.name for backend in backends]
    on_blackwell = context.capability is not None and context.capability[0] == BLACKWELL
    if on_blackwell and {"FLASHINFER", "TURBOQUANT"} <= set(names) and release.error("no_layout"):
        layouts = [_DENSE_LAYOUTS if name == "FLASHINFER" else _PACKED_LAYOUTS for name in names]
        raise refuse(
            release,
            "kv_dtype_not_supported",
            "no_layout",
            layouts=str(layouts),
            kv_cache_dtype=context.cache_dtype,
        )


def _specs(cache: PlannedCache, context: CacheContext, sizes: BlockSizes) -> tuple[KvSpec, ...]:
    spec, block_size = cache.spec, sizes.attention
    if isinstance(spec, StateSpec):
        return (state_spec(spec, context, sizes.state, sizes.padded_page_bytes),)
    if isinstance(spec, PackedSpec):
        return packed_specs(spec, context, block_size)
    if isinstance(spec, MlaSpec):
        return latent_specs(spec, context, block_size, cache.cache_dtype)
    backend = cache.backend or BLOCK_SPARSE
    attention = attention_spec(spec, context, backend, block_size, cache.cache_dtype)
    if spec.index_head_dim is None:
        return (attention,)
    return attention, index_key_spec(spec.index_head_dim, context, block_size)
