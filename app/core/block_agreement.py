"""The block sizes of one model: what backends, states and packed dtypes agree on.

Source: vllm/platforms/interface.py `update_block_size_for_backend`, before 0.18.0
vllm/platforms/cuda.py `check_and_update_config` and
vllm/model_executor/models/config.py `HybridAttentionMambaModelConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.core.attention_layer import BLACKWELL, AttentionBackend
from app.core.block_size import (
    DEFAULT_BLOCK_SIZE,
    HybridNeeds,
    common_block_size,
    hybrid_block_size,
    mixed_dtype_block_size,
)
from app.core.kv_dtypes import ELEMENT_BYTES, head_bytes, is_packed, latent_bytes
from app.core.layer_cache import CacheContext, checkpoint_alignment, state_bytes
from app.core.model_spec import (
    AttentionSpec,
    CacheSpec,
    MlaSpec,
    PackedSpec,
    StateSpec,
)
from app.core.packed_layer import PACKED_BLOCK_SIZE

_SM100_STEP_HEAD = 256


@dataclass(frozen=True, slots=True)
class PlannedCache:
    """One cache of one layer before its block size is known."""

    spec: CacheSpec
    stage: int
    cache_dtype: str
    backend: AttentionBackend | None


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Tokens of a block of attention and of recurrent layers (0: a state spans the request).

    `padded_page_bytes` is what pages of states are padded to, None for no padding.
    """

    attention: int
    state: int = 0
    padded_page_bytes: int | None = None


def agree_on_blocks(
    context: CacheContext, caches: tuple[PlannedCache, ...], backends: list[AttentionBackend]
) -> BlockSizes:
    """Agree on the block sizes of a model whose backends are known."""
    if any(isinstance(cache.spec, PackedSpec) for cache in caches):
        return BlockSizes(context.user_block_size or PACKED_BLOCK_SIZE)
    if not backends:
        block_size = context.user_block_size or DEFAULT_BLOCK_SIZE
        return BlockSizes(block_size, 0 if context.mamba_cache_mode == "none" else block_size)
    kernels = [backend.block_sizes for backend in backends]
    block_size = context.user_block_size or _default_block_size(context, backends)
    states = {cache.spec for cache in caches if isinstance(cache.spec, StateSpec)}
    if states:
        return _with_states(context, caches, states, block_size, kernels)
    if is_packed(context.cache_dtype) and context.release.packed_blocks_hold_wide_pages:
        block_size = mixed_dtype_block_size(block_size, kernels[0], ELEMENT_BYTES[context.dtype])
    return BlockSizes(block_size)


def _default_block_size(context: CacheContext, backends: list[AttentionBackend]) -> int:
    """Block size of a release: by backend up to 0.17.1, by kernel from 0.18.0."""
    forced = dict(context.release.forced_block_sizes)
    if forced:
        return max(forced.get(backend.name, DEFAULT_BLOCK_SIZE) for backend in backends)
    return common_block_size([backend.block_sizes for backend in backends])


def _with_states(
    context: CacheContext,
    caches: tuple[PlannedCache, ...],
    states: set[StateSpec],
    block_size: int,
    kernels: list[tuple[int, ...]],
) -> BlockSizes:
    mode = context.mamba_cache_mode
    per_token = _bytes_per_token(context, caches)
    chunks = [spec.chunk_size for spec in states]
    fixed, least = _steps(context, caches)
    attention, step = hybrid_block_size(
        block_size,
        kernels,
        HybridNeeds(
            state_bytes=max(state_bytes(spec, context) for spec in states),
            bytes_per_token=per_token,
            checkpoint_alignment=_block_alignment(states, context),
            chunk_size=max(chunks) if mode == "all" else 0,
        ),
        fixed,
        least,
    )
    state = {"align": attention, "all": step}.get(mode, 0)
    return BlockSizes(attention, state, attention * per_token)


def _steps(context: CacheContext, caches: tuple[PlannedCache, ...]) -> tuple[int, int]:
    """Step of a hybrid's blocks where a release fixes it, and the least where kernels decide."""
    plain, wide, latent = context.release.hybrid_alignment
    if any(isinstance(cache.spec, MlaSpec) for cache in caches):
        return (latent, 0) if plain else (0, latent)
    on_blackwell = context.capability is not None and context.capability[0] == BLACKWELL
    heads = {cache.spec.head_size for cache in caches if isinstance(cache.spec, AttentionSpec)}
    return (wide if on_blackwell and _SM100_STEP_HEAD in heads else plain), 0


def _bytes_per_token(context: CacheContext, caches: tuple[PlannedCache, ...]) -> int:
    """Bytes of one token in the first attention layer, which recurrent layers align to."""
    spec = next(c.spec for c in caches if isinstance(c.spec, AttentionSpec | MlaSpec))
    if isinstance(spec, AttentionSpec):
        size = head_bytes(context.cache_dtype, context.dtype, spec.head_size, spec.head_size_v)
        return context.kv_heads(spec.num_kv_heads) * size
    width = spec.kv_lora_rank + spec.qk_rope_head_dim
    return latent_bytes(context.cache_dtype, context.dtype, width)


def _block_alignment(states: set[StateSpec], context: CacheContext) -> int:
    """Grid that checkpoints inside a prefill keep to, from the release that aligns blocks to it."""
    if context.mamba_cache_mode != "align" or context.release.gdn_block_alignment <= 1:
        return 1
    alignments = [checkpoint_alignment(spec, context) for spec in states]
    return max(alignments) if all(alignments) else 1
