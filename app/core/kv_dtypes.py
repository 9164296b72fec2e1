"""The values of `--kv-cache-dtype`, and the bytes one token takes per head in each.

Source: vllm/v1/kv_cache_interface.py, vllm/v1/attention/backends (`customize_spec`).
"""

from __future__ import annotations

from app.core.units import ceil_div

ELEMENT_BYTES = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}
SCALE_BYTES = 8
"""Two float32 scales that per-token-head dtypes keep inside the page."""
DS_MLA_BYTES = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
"""Packed latent vector of sparse MLA: 512 values, their scales and 64 rotary values."""
# Bits of keys and values; keys of 8 bits are FP8 without a norm.
_TURBOQUANT_BITS = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
_ULTRAQUANT_GROUP = 32


def is_fp8(cache_dtype: str) -> bool:
    """True for the FP8 kinds with one scale per tensor."""
    return cache_dtype in {"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"}


def is_quantized(cache_dtype: str) -> bool:
    """True for FP8, per-token-head and NVFP4 kinds, as the attention backends ask it."""
    return cache_dtype.startswith(("fp8", "nvfp4")) or cache_dtype.endswith("per_token_head")


def is_packed(cache_dtype: str) -> bool:
    """True for TurboQuant and UltraQuant, which pack keys and values into one slot."""
    return cache_dtype.startswith("turboquant_") or cache_dtype == "ultraquant_4bit"


def element_bytes(cache_dtype: str, model_dtype: str) -> int:
    """Bytes of one stored element; packed dtypes are stored as bytes."""
    return ELEMENT_BYTES.get(model_dtype if cache_dtype == "auto" else cache_dtype, 1)


def head_bytes(cache_dtype: str, model_dtype: str, head_size: int, head_size_v: int) -> int:
    """Bytes of one token's key and value in one KV head."""
    if cache_dtype in {"nvfp4", "nvfp4_4over6"}:
        return _nvfp4_bytes(head_size) + _nvfp4_bytes(head_size_v)
    if cache_dtype == "int4_per_token_head":
        return head_size // 2 + head_size_v // 2 + SCALE_BYTES
    if cache_dtype.endswith("per_token_head"):
        return head_size + head_size_v + SCALE_BYTES
    if is_packed(cache_dtype):
        return packed_head_bytes(cache_dtype, head_size)
    return (head_size + head_size_v) * element_bytes(cache_dtype, model_dtype)


def latent_bytes(cache_dtype: str, model_dtype: str, size: int) -> int:
    """Bytes of one token's latent vector of `size` elements (MLA)."""
    if cache_dtype in DS_MLA_BYTES:
        return DS_MLA_BYTES[cache_dtype]
    if cache_dtype == "int4_per_token_head":
        return size // 2 + SCALE_BYTES
    if cache_dtype.endswith("per_token_head"):
        return size + SCALE_BYTES
    return size * element_bytes(cache_dtype, model_dtype)


def packed_head_bytes(cache_dtype: str, head_size: int) -> int:
    """Bytes of one token's slot in one KV head for TurboQuant and UltraQuant.

    Source: vllm/model_executor/layers/quantization/turboquant/config.py,
    vllm/v1/attention/ops/ultraquant/format.py.
    """
    if cache_dtype == "ultraquant_4bit":
        scales = ceil_div(head_size, _ULTRAQUANT_GROUP)
        return 2 * (head_size // 2 + scales)
    key_bits, value_bits = _TURBOQUANT_BITS[cache_dtype]
    fp8_keys = key_bits == 8  # noqa: PLR2004 - eight bits are FP8
    key = head_size if fp8_keys else ceil_div(head_size * key_bits, 8) + 2
    value = ceil_div(head_size * value_bits, 8) + 4
    return (key + value) + (key + value) % 2


def _nvfp4_bytes(size: int) -> int:
    """Four bits an element and one FP8 scale for 16 of them."""
    return size // 2 + size // 16
