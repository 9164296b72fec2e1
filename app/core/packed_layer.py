"""The caches of one DeepSeek-V4 layer: window, compressed states, index keys, compressors.

Source: vllm/models/deepseek_v4/attention.py and compressor.py,
vllm/v1/attention/backends/mla/sparse_swa.py (0.32.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd, lcm

from app.core.kv_spec import KvSpec
from app.core.layer_cache import CacheContext, index_bytes
from app.core.model_spec import PackedSpec
from app.core.refusals import refuse
from app.core.units import ceil_div

PACKED_BLOCK_SIZE = 256
_WINDOW_BLOCK_SIZE = 64
_STATE_BYTES = 584
"""448 values in FP8, 64 rotary values in 16 bit and 8 scales."""
_ALIGNMENT = 576
_FINE_RATIO = 4
_COMPRESSOR_BLOCKS = {4: 4, 128: 8}
_FLOAT32 = 4


def packed_cache_dtype(context: CacheContext, cache_dtype: str) -> str:
    """Resolve `--kv-cache-dtype`: every FP8 kind, and from 0.30.0 `auto`, is stored as packed rows.

    Raises Refusal for anything else.
    """
    by_default = cache_dtype == "auto" and context.release.deepseek_v4_auto_dtype
    if by_default or cache_dtype.startswith("fp8"):
        return "fp8_ds_mla"
    raise refuse(
        context.release,
        "kv_dtype_not_supported",
        "deepseek_v4_kv_cache_dtype",
        kv_cache_dtype=cache_dtype,
    )


def packed_specs(spec: PackedSpec, context: CacheContext, block_size: int) -> tuple[KvSpec, ...]:
    """All caches of one layer, in the order in which vLLM registers them. Raises Refusal."""
    if block_size < spec.compress_ratio:
        raise refuse(context.release, "refused_by_vllm", "packed_block_size", block_size=block_size)
    window = _aligned(
        KvSpec("sliding_window_mla", _WINDOW_BLOCK_SIZE, _STATE_BYTES, window=spec.window)
    )
    ratio = spec.compress_ratio
    if ratio <= 1:
        return (window,)
    specs = [window]
    if spec.index_head_dim is not None:
        size = index_bytes(spec.index_head_dim)
        specs.append(_aligned(KvSpec("mla", block_size, size, ratio, identity=("index",))))
        specs.append(_compressor(spec.index_head_dim, ratio))
    specs.append(_aligned(KvSpec("mla", block_size, _STATE_BYTES, ratio)))
    specs.append(_compressor(spec.head_size, ratio))
    return tuple(specs)


def kernel_pages_bytes(specs: Iterable[KvSpec]) -> int:
    """Bytes of which a block is a multiple where it spans several blocks of the kernels.

    The kernels read pages of 256 tokens; a larger block holds whole ones of every kind. Source:
    `customize_attention_spec` in vllm/v1/worker/utils.py, `get_block_stride_alignment` in
    vllm/v1/kv_cache_interface.py (0.32.0).
    """
    pages = [1]
    for spec in {spec for spec in specs if spec.kind == "mla"}:
        kernel = gcd(PACKED_BLOCK_SIZE, spec.block_size)
        if kernel != spec.block_size:
            # Where a kernel's block holds no whole state, vLLM keeps the page of its own block.
            page = _aligned(replace(spec, block_size=kernel)).page_size_bytes
            pages.append(page or spec.page_size_bytes)
    return lcm(*pages)


def _compressor(head_size: int, ratio: int) -> KvSpec:
    """Float32 keys and scores of the states that are still being compressed."""
    overlap = 2 if ratio == _FINE_RATIO else 1
    size = 2 * overlap * head_size * _FLOAT32
    block_size = _COMPRESSOR_BLOCKS.get(ratio, _COMPRESSOR_BLOCKS[128])
    return _aligned(KvSpec("sliding_window_mla", block_size, size, window=overlap * ratio))


def _aligned(spec: KvSpec) -> KvSpec:
    """Pad the page to a multiple of the row that the kernel reads."""
    page = ceil_div(spec.unpadded_page_bytes, _ALIGNMENT) * _ALIGNMENT
    return replace(spec, padded_page_bytes=page)
