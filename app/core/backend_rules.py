"""What speaks against an attention backend for a layer, as keys of the `reasons` of the data.

Source: vllm/v1/attention/backend.py `validate_configuration`, `supports_combination` of
vllm/v1/attention/backends, vllm/v1/attention/backends/fa_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable

from app.core.attention_layer import (
    AMPERE_AND_ADA,
    BLACKWELL,
    CONSUMER_BLACKWELL,
    HOPPER,
    THOR,
    AttentionBackend,
    AttentionLayer,
    Capability,
)
from app.core.kv_dtypes import is_packed, is_quantized

Rule = Callable[[AttentionBackend, AttentionLayer], bool]
_FA2, _FA3, _FA4 = 2, 3, 4
_LARGEST_FA3_HEAD = 256
_LARGEST_FA4_HEAD_BLACKWELL = 128
_SPARSE_RANK = 512
_NOPE_HEAD = 512
_UNREADABLE_NVFP4_HEAD = 64


def flash_attention_version(layer: AttentionLayer) -> int:
    """FlashAttention version that would compute the layer, 2 where nothing newer applies."""
    major = layer.capability[0]
    version = {HOPPER: _FA3, BLACKWELL: _FA4}.get(major, _FA2)
    if layer.flash_attention_version is not None:
        version = layer.flash_attention_version
    if version == _FA3 and major == HOPPER and layer.head_size > _LARGEST_FA3_HEAD:
        version = _FA4
    if version == _FA4 and major >= BLACKWELL and layer.head_size > _LARGEST_FA4_HEAD_BLACKWELL:
        return _FA2
    return version


def objections(backend: AttentionBackend, layer: AttentionLayer) -> list[str]:
    """List what a backend cannot do, in vLLM's order; one combination at most."""
    checks = (
        ("head_size", not _fits_head(backend, layer)),
        ("dtype", layer.dtype not in backend.model_dtypes),
        ("kv_cache_dtype", not _fits_cache_dtype(backend, layer)),
        ("block_size", layer.block_size and not backend.supports_block_size(layer.block_size)),
        ("mm_prefix", layer.use_mm_prefix and not _has(backend.mm_prefix, backend, layer)),
        ("mla", layer.use_mla and not backend.mla),
        ("non_mla", backend.mla and not layer.use_mla),
        ("sinks", layer.has_sink and not _has(backend.sinks, backend, layer)),
        ("sparse", layer.use_sparse and not backend.sparse),
        ("non_sparse", backend.sparse and not layer.use_sparse),
        ("capability", not _fits_card(backend, layer.capability)),
        ("attention_type", layer.encoder_decoder and not backend.encoder_decoder),
        ("sliding_window", layer.has_sliding_window and not backend.sliding_window),
        ("dcp", layer.use_dcp and not backend.dcp),
    )
    found = [key for key, refused in checks if refused]
    combination = next((rule for rule in backend.rules if _RULES[rule](backend, layer)), None)
    return found if combination is None else [*found, combination]


def _fits_head(backend: AttentionBackend, layer: AttentionLayer) -> bool:
    size = layer.head_size
    if backend.head_sizes:
        return size in backend.head_sizes
    largest = backend.max_head_size
    if backend.name == "FLASH_ATTN" and layer.capability[0] not in {HOPPER, BLACKWELL, THOR}:
        largest = _LARGEST_FA3_HEAD
    return backend.min_head_size <= size <= largest and size % backend.head_size_multiple == 0


def _fits_cache_dtype(backend: AttentionBackend, layer: AttentionLayer) -> bool:
    dtype, major = layer.kv_cache_dtype, layer.capability[0]
    if dtype not in backend.kv_cache_dtypes:
        return False
    if backend.name == "FLASHINFER" and dtype.startswith("nvfp4"):
        if major == BLACKWELL:
            return True
        beyond = {AMPERE_AND_ADA, HOPPER, CONSUMER_BLACKWELL}
        return layer.nvfp4_beyond_sm100 and dtype == "nvfp4" and major in beyond
    if backend.quantized_majors and is_quantized(dtype):
        return major in backend.quantized_majors and layer.flash_attention_version != _FA2
    return True


def _fits_card(backend: AttentionBackend, capability: Capability) -> bool:
    if backend.majors and capability[0] not in backend.majors:
        return False
    return backend.min_capability <= capability <= backend.max_capability


def _has(ability: str, backend: AttentionBackend, layer: AttentionLayer) -> bool:
    return ability == "yes" or (ability != "no" and _ABILITIES[ability](backend, layer))


def _fa_reads_quantized(layer: AttentionLayer) -> bool:
    version, major = flash_attention_version(layer), layer.capability[0]
    if major == HOPPER:
        return version == _FA3 or (version == _FA4 and layer.head_size == 2 * _LARGEST_FA3_HEAD)
    return version == _FA4 and major == BLACKWELL


def _quantized(layer: AttentionLayer) -> bool:
    return is_quantized(layer.kv_cache_dtype)


def _device_flash_attention(layer: AttentionLayer) -> int:
    """Version that the card alone gives, whatever the head size."""
    version = {HOPPER: _FA3, BLACKWELL: _FA4}.get(layer.capability[0], _FA2)
    return version if layer.flash_attention_version is None else layer.flash_attention_version


def _fa_lacks_quantized(_: AttentionBackend, layer: AttentionLayer) -> bool:
    return _quantized(layer) and not _fa_reads_quantized(layer)


def _packed_or_quantized(layer: AttentionLayer) -> bool:
    return _quantized(layer) or is_packed(layer.kv_cache_dtype)


def _fa_lacks_packed(_: AttentionBackend, layer: AttentionLayer) -> bool:
    return is_packed(layer.kv_cache_dtype) or _fa_lacks_quantized(_, layer)


def _nvfp4_beyond_sm100(layer: AttentionLayer) -> bool:
    return layer.kv_cache_dtype.startswith("nvfp4") and layer.capability[0] != BLACKWELL


def _flashmla_head(_: AttentionBackend, layer: AttentionLayer) -> bool:
    return layer.head_size == _NOPE_HEAD and layer.qk_rope_head_dim != 0


def _qk_nope(backend: AttentionBackend, layer: AttentionLayer) -> bool:
    return layer.qk_nope_head_dim not in backend.qk_nope_head_dims


_ABILITIES: dict[str, Rule] = {
    "flash_attention_3_or_4": lambda _, layer: _device_flash_attention(layer) in {_FA3, _FA4},
    "flash_attention_4": lambda _, layer: layer.capability[0] in {HOPPER, BLACKWELL, THOR},
    "sink_majors": lambda backend, layer: layer.capability[0] in backend.sink_majors,
}
_RULES: dict[str, Rule] = {
    "flash_attention_sinks": lambda _, layer: layer.has_sink and layer.capability < (9, 0),
    "flash_attention_fp8_mm_prefix": lambda _, layer: (
        layer.use_mm_prefix and _quantized(layer) and layer.capability == (9, 0)
    ),
    "flash_attention_packed_mm_prefix": lambda _, layer: (
        layer.use_mm_prefix and _packed_or_quantized(layer) and layer.capability == (9, 0)
    ),
    "flash_attention_fp8": _fa_lacks_quantized,
    "flash_attention_fp8_short": _fa_lacks_quantized,
    "flash_attention_packed": _fa_lacks_packed,
    "composite_fp8": _fa_lacks_quantized,
    "composite_packed": _fa_lacks_packed,
    "flash_attention_mm_prefix": lambda _, layer: (
        layer.use_mm_prefix and flash_attention_version(layer) != _FA4
    ),
    "composite_causal": lambda _, layer: flash_attention_version(layer) not in {_FA3, _FA4},
    "flash_attention_mla": lambda _, layer: layer.capability[0] != HOPPER,
    "flash_attention_sparse_dtype": lambda _, layer: (
        layer.kv_cache_dtype not in {"auto", "float16", "bfloat16"}
    ),
    "flash_attention_sparse_dcp": lambda _, layer: layer.use_dcp,
    "flashmla_dense": lambda _, layer: not layer.use_sparse and layer.capability[0] != HOPPER,
    "flashmla_sparse": lambda _, layer: (
        layer.use_sparse and layer.capability[0] not in {HOPPER, BLACKWELL}
    ),
    "nvfp4_head_size_64": lambda _, layer: (
        _nvfp4_beyond_sm100(layer) and layer.head_size == _UNREADABLE_NVFP4_HEAD
    ),
    "nvfp4_sinks": lambda _, layer: _nvfp4_beyond_sm100(layer) and layer.has_sink,
    "flashinfer_mla_nope": _qk_nope,
    "flashinfer_mla_nope_one": _qk_nope,
    "tokenspeed_missing": lambda *_: True,
    "flashmla_sparse_512": _flashmla_head,
    "flashmla_sparse_nvfp4": lambda _, layer: (
        layer.kv_cache_dtype == "nvfp4_ds_mla" and layer.capability[0] != BLACKWELL
    ),
    "sm90_sparse_dense": lambda _, layer: not layer.use_sparse,
    "flashinfer_sparse_rank": lambda _, layer: layer.kv_lora_rank != _SPARSE_RANK,
    "flashinfer_sparse_rope": lambda _, layer: layer.qk_rope_head_dim not in {0, 64},
    "flashinfer_sparse_ds_mla": lambda _, layer: layer.kv_cache_dtype == "fp8_ds_mla",
    "flashinfer_sparse_nope": _qk_nope,
    "flashinfer_sparse_nope_one": _qk_nope,
    "flashinfer_sparse_topk": lambda _, layer: not layer.has_index_topk,
    "sm120_model_dtype": lambda backend, layer: layer.dtype not in backend.model_dtypes,
    "sm120_dtype": lambda backend, layer: layer.kv_cache_dtype not in backend.kv_cache_dtypes,
    "sm120_topk": lambda _, layer: not layer.has_index_topk,
}
