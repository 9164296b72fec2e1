"""Turns the layers of a model into cache specs of one rank, for one block size.

Source: `get_kv_cache_spec` of vllm/model_executor/layers/attention and .../mamba,
vllm/model_executor/layers/mamba/mamba_utils.py, vllm/models/deepseek_v4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from app.core.attention_layer import (
    BLACKWELL,
    CONSUMER_BLACKWELL,
    HOPPER,
    AttentionBackend,
    Capability,
)
from app.core.kv_dtypes import ELEMENT_BYTES, head_bytes, latent_bytes
from app.core.kv_spec import KvSpec
from app.core.model_spec import AttentionSpec, MlaSpec, StateSpec
from app.core.releases import Release
from app.core.units import ceil_div

_CHECKPOINT_HEAD_DIM = 128
_INDEX_SCALE_GROUP = 128


@dataclass(frozen=True, slots=True)
class CacheContext:
    """Everything besides the model that decides how layers are grouped.

    `cache_dtype` and `dtype` are the KV cache's and the model's; `ssm_dtype` the recurrent state's
    (`auto`: what the config asks for). `draft_layers` counts draft layers that share the cache.
    `mm_prefix` says that images attend in both directions. `capability` is None for a card that is
    not NVIDIA's or not known; `gpu_name` occurs in refusals alone and decides nothing.
    """

    release: Release
    capability: Capability | None
    gpu_name: str = field(compare=False)
    tensor_parallel_size: int
    pipeline_parallel_size: int
    decode_context_parallel_size: int
    cache_dtype: str
    dtype: str
    user_block_size: int | None
    hybrid_manager: bool
    mamba_cache_mode: str
    ssm_dtype: str
    num_speculative_tokens: int
    draft_layers: int
    mm_prefix: bool

    def kv_heads(self, total: int) -> int:
        """KV heads of one rank: replicated where there are fewer than ranks."""
        return max(1, total // self.tensor_parallel_size)


def attention_spec(
    spec: AttentionSpec,
    context: CacheContext,
    backend: AttentionBackend,
    block_size: int,
    cache_dtype: str,
) -> KvSpec:
    """Cache of one attention layer on one rank."""
    heads = context.kv_heads(spec.num_kv_heads)
    content = head_bytes(cache_dtype, context.dtype, spec.head_size, spec.head_size_v)
    if spec.kind == "sliding_window" and context.release.window_blocks_follow_kernel:
        block_size = window_block_size(backend, block_size)
    return KvSpec(
        kind=spec.kind,
        block_size=block_size,
        state_bytes=heads * content,
        window=spec.window,
        identity=(heads, content),
    )


def window_block_size(backend: AttentionBackend, block_size: int) -> int:
    """Largest block of the kernel that is no larger than the model's.

    Source: vllm/model_executor/layers/attention/attention.py `_largest_kernel_block_within`.
    """
    if len(backend.block_sizes) == 1:
        step = backend.block_sizes[0]
        return max(step, block_size // step * step)
    fitting = [size for size in backend.block_sizes if size <= block_size]
    return max(fitting) if fitting else min(backend.block_sizes)


def index_key_spec(head_dim: int, context: CacheContext, block_size: int) -> KvSpec:
    """Index keys in the model's dtype beside an attention cache (MiniMax-M3)."""
    size = head_dim * ELEMENT_BYTES[context.dtype]
    return KvSpec("mla", block_size, size, identity=("index", size))


def latent_specs(
    spec: MlaSpec, context: CacheContext, block_size: int, cache_dtype: str
) -> tuple[KvSpec, ...]:
    """Latent vector of one MLA layer, and the keys of its indexer if it has one.

    The indexer comes first: FP8 keys with one float32 scale for every 128 of them, whatever
    `--kv-cache-dtype` is.
    """
    size = latent_bytes(cache_dtype, context.dtype, spec.kv_lora_rank + spec.qk_rope_head_dim)
    latent = KvSpec("mla", block_size, size, identity=(cache_dtype,))
    if spec.index_head_dim is None:
        return (latent,)
    return KvSpec("mla", block_size, index_bytes(spec.index_head_dim), identity=("index",)), latent


def index_bytes(head_dim: int) -> int:
    """Bytes of one token's FP8 index key with its scales."""
    return head_dim + 4 * ceil_div(head_dim, _INDEX_SCALE_GROUP)


def state_spec(
    spec: StateSpec, context: CacheContext, block_size: int, padded_page_bytes: int | None
) -> KvSpec:
    """State of one recurrent layer on one rank; `block_size` is 0 where it spans the request."""
    size = state_bytes(spec, context)
    return KvSpec(
        kind="mamba",
        block_size=block_size,
        state_bytes=size,
        tokens_per_state=0,
        padded_page_bytes=padded_page_bytes,
        state_blocks=state_blocks(spec, context),
        state_every_block=context.mamba_cache_mode == "all",
        identity=(spec.kind, size),
    )


def state_bytes(spec: StateSpec, context: CacheContext) -> int:
    """Bytes of one layer's state on one rank: convolution and recurrent part."""
    tp = context.tensor_parallel_size
    conv = ELEMENT_BYTES[context.dtype]
    asked = spec.kind == "kda" or context.release.state_dtype_from_config
    wanted = context.ssm_dtype
    if wanted == "auto":
        wanted = spec.ssm_dtype if asked and spec.ssm_dtype else context.dtype
    ssm = ELEMENT_BYTES[wanted]
    heads = spec.num_value_heads // tp
    window = max(0, spec.conv_kernel - 1)
    drafts = context.num_speculative_tokens
    if spec.kind == "gated_delta_net":
        channels = 2 * spec.num_key_heads * spec.key_head_dim
        channels += spec.num_value_heads * spec.value_head_dim
        shape = (heads, spec.value_head_dim, spec.key_head_dim)
        return (window + drafts) * (channels // tp) * conv + prod(shape) * ssm
    if spec.kind == "kda":
        channels = spec.num_value_heads * spec.value_head_dim
        channels += 2 * spec.num_key_heads * spec.key_head_dim
        shape = (heads, spec.value_head_dim, spec.value_head_dim)
        return (window + drafts) * (channels // tp) * conv + prod(shape) * ssm
    if spec.kind == "mamba2":
        groups = spec.num_groups if spec.num_groups % tp == 0 else tp
        channels = spec.conv_dim + 2 * groups * spec.key_head_dim
        shape = (heads, spec.value_head_dim, spec.key_head_dim)
        return (window + drafts) * (channels // tp) * conv + prod(shape) * ssm
    if spec.kind == "mamba1":
        channels = spec.conv_dim // tp
        return window * channels * conv + channels * spec.key_head_dim * ssm
    if spec.kind == "short_conv":
        return window * (spec.conv_dim // tp) * conv
    return heads * spec.value_head_dim * spec.value_head_dim * conv


def state_blocks(spec: StateSpec, context: CacheContext) -> int:
    """Blocks that a request takes in one recurrent layer, besides one for every block of tokens.

    Source: vllm/v1/kv_cache_interface.py `MambaSpec.max_memory_usage_bytes`.
    """
    release, drafts = context.release, context.num_speculative_tokens
    if context.mamba_cache_mode == "all":
        return drafts * release.mamba_all_draft_blocks
    drafts *= release.mamba_draft_blocks
    if context.mamba_cache_mode != "align":
        return release.mamba_blocks[0] + drafts
    return release.mamba_blocks[1] + drafts + int(checkpoint_alignment(spec, context) > 0)


def checkpoint_alignment(spec: StateSpec, context: CacheContext) -> int:
    """Tokens to which a layer can align a checkpoint inside a prefill, 0 where it keeps none.

    A layer that keeps one takes one block more. Gated delta net and KDA do so only with kernels
    for certain cards. Source: qwen_gdn_linear_attn.py (0.33.0) and mamba_mixer2.py in
    vllm/model_executor/layers/mamba, vllm/models/kimi_k3/nvidia/kda.py.
    """
    release = context.release
    major = context.capability[0] if context.capability else 0
    if spec.kind == "mamba2":
        return int(release.mamba2_extra_block)
    newer = major in {BLACKWELL, CONSUMER_BLACKWELL}
    if spec.kind == "gated_delta_net" and release.gdn_extra_block:
        fits = context.capability == (HOPPER, 0) or (
            newer and spec.key_head_dim == _CHECKPOINT_HEAD_DIM
        )
        return release.gdn_block_alignment if fits else 0
    if spec.kind == "kda" and spec.bounded_gate and release.kda_extra_block:
        fits = major == HOPPER or newer
        return 16 if fits and spec.value_head_dim == _CHECKPOINT_HEAD_DIM else 0
    return 0
