"""Chooses the attention backend of each kind of layer, or refuses the start as vLLM does.

Source: vllm/v1/attention/selector.py, vllm/model_executor/models/config.py `Gemma4Config`,
vllm/model_executor/models/mimo_v2.py (keys and values of different size).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from app.core.attention_layer import BLACKWELL, HOPPER, THOR, AttentionBackend, AttentionLayer
from app.core.kv_dtypes import is_fp8, is_packed, is_quantized
from app.core.layer_cache import CacheContext
from app.core.model_spec import AttentionSpec, MlaSpec, ModelSpec
from app.core.refusals import refuse

INDEXER = AttentionBackend("DEEPSEEK_V32_INDEXER", frozenset(), (64,))
BLOCK_SPARSE = AttentionBackend("MINIMAX_M3_SPARSE", frozenset(), (128,))
_UNEQUAL_FLASH = AttentionBackend("FLASH_ATTN_DIFFKV", frozenset({"fp8", "fp8_e4m3"}), (16,))
_UNEQUAL_TRITON = AttentionBackend("TRITON_ATTN_DIFFKV", frozenset({"fp8", "fp8_e4m3"}), (16,))
_FORCED = "TRITON_ATTN"
_WIDE_HEAD = 512
_FP8_WIDE_HEAD_BLOCK = 64
_NATIVE_FP8 = (8, 9)
_TRITON_FP8_TEXTS = {"TRITON_ATTN": "triton_fp8", "TRITON_MLA": "triton_mla_fp8"}


def choose_backend(
    model: ModelSpec, spec: AttentionSpec | MlaSpec, context: CacheContext, cache_dtype: str
) -> AttentionBackend:
    """Choose the backend of one layer. Raises Refusal where none can serve it."""
    book = context.release.backends
    if context.capability is None or book is None:
        return _unknown_card(spec)
    if isinstance(spec, AttentionSpec) and spec.index_head_dim is not None:
        return BLOCK_SPARSE
    if isinstance(spec, AttentionSpec) and spec.head_size != spec.head_size_v:
        return _unequal_heads(context, cache_dtype)
    layer = attention_layer(model, spec, context, cache_dtype)
    if _forces_triton(model, context):
        chosen = book.forced(layer, _FORCED)
        if chosen is None:
            raise _not_valid(context, layer, _FORCED)
    else:
        chosen = book.select(layer)
        if chosen is None:
            raise refuse(
                context.release,
                "kv_dtype_not_supported",
                "no_attention_backend",
                **_selector(layer, context),
                reasons=book.all_reasons(layer),
            )
    _check_fp8(chosen, context, cache_dtype)
    _check_sparse_dcp(chosen, context, cache_dtype)
    return _with_wide_head_blocks(chosen, model, context)


def _not_valid(context: CacheContext, layer: AttentionLayer, name: str) -> Exception:
    """Build the refusal of the one backend that a model allows."""
    book = context.release.backends
    backend = None if book is None else book.named(name)
    reasons = [] if book is None or backend is None else book.reasons_against(backend, layer)
    return refuse(
        context.release,
        "kv_dtype_not_supported",
        "backend_not_valid",
        backend=name,
        reasons=str(reasons),
        kv_cache_dtype=layer.kv_cache_dtype,
    )


def _check_fp8(backend: AttentionBackend, context: CacheContext, cache_dtype: str) -> None:
    """Refuse FP8 on cards whose Triton kernels cannot read it."""
    capability = context.capability or _NATIVE_FP8
    text = _TRITON_FP8_TEXTS.get(backend.name, "")
    if not cache_dtype.startswith("fp8") or capability >= _NATIVE_FP8:
        return
    if context.release.error(text):
        raise refuse(
            context.release,
            "kv_dtype_not_supported",
            text,
            gpu_name=context.gpu_name,
            capability=".".join(str(part) for part in capability),
            suggested="bfloat16" if capability >= (8, 0) else "float16",
            kv_cache_dtype=cache_dtype,
        )


def _check_sparse_dcp(backend: AttentionBackend, context: CacheContext, cache_dtype: str) -> None:
    """Refuse decode context parallelism where FlashMLA reads a 16-bit cache sparsely."""
    split = context.decode_context_parallel_size > 1 and not is_quantized(cache_dtype)
    text = "flashmla_sparse_dcp" if backend.name == "FLASHMLA_SPARSE" else ""
    if split and context.release.error(text):
        raise refuse(context.release, "dcp_not_supported", text)


def _unequal_heads(context: CacheContext, cache_dtype: str) -> AttentionBackend:
    """Pick the backend for keys and values of different size (MiMo-V2)."""
    major = context.capability[0] if context.capability else 0
    flash = major in {HOPPER, BLACKWELL}
    backend, text = (
        (_UNEQUAL_FLASH, "flash_diffkv") if flash else (_UNEQUAL_TRITON, "triton_diffkv")
    )
    counted = is_quantized(cache_dtype) or is_packed(cache_dtype)
    if counted and (cache_dtype not in backend.kv_cache_dtypes or major == BLACKWELL):
        raise refuse(context.release, "kv_dtype_not_supported", text, kv_cache_dtype=cache_dtype)
    return backend


def attention_layer(
    model: ModelSpec, spec: AttentionSpec | MlaSpec, context: CacheContext, cache_dtype: str
) -> AttentionLayer:
    """Collect what decides about a layer's backend."""
    common = AttentionLayer(
        capability=context.capability or (0, 0),
        head_size=0,
        dtype=context.dtype,
        kv_cache_dtype=cache_dtype,
        block_size=context.user_block_size,
        use_dcp=context.decode_context_parallel_size > 1,
        qk_nope_head_dim=model.qk_nope_head_dim,
        num_heads=model.num_attention_heads // context.tensor_parallel_size,
        has_index_topk=isinstance(spec, MlaSpec) and spec.sparse,
        nvfp4_beyond_sm100=context.release.nvfp4_kv_beyond_sm100,
        flash_attention_version=_flash_attention_version(model, context),
    )
    if isinstance(spec, MlaSpec):
        return replace(
            common,
            head_size=spec.kv_lora_rank + spec.qk_rope_head_dim,
            use_mla=True,
            use_sparse=spec.sparse,
            kv_lora_rank=spec.kv_lora_rank,
            qk_rope_head_dim=spec.qk_rope_head_dim,
        )
    return replace(
        common,
        head_size=spec.head_size,
        has_sink=spec.sinks,
        use_mm_prefix=context.mm_prefix,
        has_sliding_window=spec.kind == "sliding_window",
        encoder_decoder=spec.kind == "cross_attention",
    )


def sparse_cache_dtype(spec: MlaSpec, context: CacheContext, cache_dtype: str) -> str:
    """Resolve a dtype that a release packs for sparse MLA before it chooses a backend.

    Source: vllm/model_executor/models/config.py `DeepseekV32ForCausalLM` (0.11.0 to 0.17.1).
    """
    if spec.sparse and cache_dtype in context.release.sparse_mla_packed_dtypes:
        return "fp8_ds_mla"
    return cache_dtype


def mla_cache_dtype(backend: AttentionBackend, cache_dtype: str) -> str:
    """Turn a dtype into the packed one that a sparse MLA kernel stores.

    Source: vllm/model_executor/layers/attention/mla_attention.py.
    """
    if backend.name == "FLASHMLA_SPARSE" and is_quantized(cache_dtype):
        return cache_dtype if cache_dtype == "nvfp4_ds_mla" else "fp8_ds_mla"
    if backend.name == "FLASHINFER_MLA_SPARSE_SM120":
        return "fp8_ds_mla"
    return cache_dtype


@lru_cache(maxsize=1024)
def _head_sizes(model: ModelSpec) -> frozenset[int]:
    caches = (layer.cache for layer in model.layers)
    return frozenset(cache.head_size for cache in caches if isinstance(cache, AttentionSpec))


def _mixed_heads(model: ModelSpec) -> bool:
    return model.model_type.startswith("gemma4") and len(_head_sizes(model)) > 1


def _forces_triton(model: ModelSpec, context: CacheContext) -> bool:
    """Gemma-4's two head sizes need FlashAttention 4, else everything runs on Triton."""
    major = context.capability[0] if context.capability else 0
    return _mixed_heads(model) and major not in {HOPPER, BLACKWELL, THOR}


def _flash_attention_version(model: ModelSpec, context: CacheContext) -> int | None:
    if is_packed(context.cache_dtype):
        return 2
    major = context.capability[0] if context.capability else 0
    if _mixed_heads(model) and major in {HOPPER, BLACKWELL, THOR}:
        return None if major == HOPPER and context.cache_dtype.startswith("fp8") else 4
    return None


def _with_wide_head_blocks(
    backend: AttentionBackend, model: ModelSpec, context: CacheContext
) -> AttentionBackend:
    """Blocks of 64 for FP8 with heads of 512 on Hopper, whose kernel reads 64 tokens at a time."""
    major = context.capability[0] if context.capability else 0
    if (
        backend.name in {"FLASH_ATTN", "TRITON_FLASH_ATTN"}
        and major == HOPPER
        and is_fp8(context.cache_dtype)
        and _WIDE_HEAD in _head_sizes(model)
    ):
        return AttentionBackend(backend.name, backend.kv_cache_dtypes, (_FP8_WIDE_HEAD_BLOCK,))
    return backend


def _unknown_card(spec: AttentionSpec | MlaSpec) -> AttentionBackend:
    """Block sizes of a card whose backends are not in the data: vLLM's default."""
    sparse = isinstance(spec, MlaSpec) and spec.sparse
    return AttentionBackend("", frozenset(), (64 if sparse else 16,))


def _selector(layer: AttentionLayer, context: CacheContext) -> dict[str, str | int]:
    """Write the fields of vLLM's AttentionSelectorConfig as its error text prints them."""
    kind = "ENCODER_DECODER" if layer.encoder_decoder else "DECODER"
    return {
        "head_size": layer.head_size,
        "dtype": f"torch.{layer.dtype}",
        "kv_cache_dtype": layer.kv_cache_dtype,
        "block_size": str(layer.block_size or (16 if context.release.forced_block_sizes else None)),
        "use_mla": str(layer.use_mla),
        "has_sink": str(layer.has_sink),
        "use_sparse": str(layer.use_sparse),
        "use_mm_prefix": str(layer.use_mm_prefix),
        "attn_type": f"AttentionType.{kind}",
        "has_sliding_window": str(layer.has_sliding_window),
        "use_dcp": str(layer.use_dcp),
    }
