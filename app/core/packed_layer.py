"""The caches of one DeepSeek-V4 layer: window, compressed states, index keys, compressors.

Source: vllm/models/deepseek_v4/attention.py and compressor.py,
vllm/v1/attention/backends/mla/sparse_swa.py (0.32.0).
"""

from __future__ import annotations

from app.core.kv_dtypes import element_bytes
from app.core.kv_spec import KvSpec
from app.core.layer_cache import CacheContext, index_bytes
from app.core.model_spec import PackedSpec
from app.core.refusals import refuse
from app.core.units import ceil_div

PACKED_BLOCK_SIZE = 256
_WINDOW_BLOCK_SIZE = 64
_STATE_BYTES = 584
"""448 values in FP8, 64 rotary values in 16 bit and 8 scales."""
_ALIGNMENT = {True: 576, False: 512}
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


def packed_specs(
    spec: PackedSpec, context: CacheContext, block_size: int, cache_dtype: str
) -> tuple[KvSpec, ...]:
    """All caches of one layer, in the order in which vLLM registers them. Raises Refusal."""
    if block_size < spec.compress_ratio:
        raise refuse(context.release, "refused_by_vllm", "packed_block_size", block_size=block_size)
    packed = cache_dtype == "fp8_ds_mla"
    state = _STATE_BYTES
    if not packed:
        state = spec.head_size * element_bytes(cache_dtype, context.dtype)
    align = _ALIGNMENT[packed]
    window = _aligned(
        KvSpec("sliding_window_mla", _WINDOW_BLOCK_SIZE, state, window=spec.window), align
    )
    ratio = spec.compress_ratio
    if ratio <= 1:
        return (window,)
    specs = [window]
    if spec.index_head_dim is not None:
        size = index_bytes(spec.index_head_dim)
        specs.append(_aligned(KvSpec("mla", block_size, size, ratio, identity=("index",)), align))
        specs.append(_compressor(spec.index_head_dim, ratio, align))
    specs.append(_aligned(KvSpec("mla", block_size, state, ratio), align))
    specs.append(_compressor(spec.head_size, ratio, align))
    return tuple(specs)


def _compressor(head_size: int, ratio: int, align: int) -> KvSpec:
    """Float32 keys and scores of the states that are still being compressed."""
    overlap = 2 if ratio == _FINE_RATIO else 1
    size = 2 * overlap * head_size * _FLOAT32
    block_size = _COMPRESSOR_BLOCKS.get(ratio, _COMPRESSOR_BLOCKS[128])
    return _aligned(KvSpec("sliding_window_mla", block_size, size, window=overlap * ratio), align)


def _aligned(spec: KvSpec, alignment: int) -> KvSpec:
    """Pad the page to a multiple of the row that the kernel reads."""
    page = ceil_div(spec.unpadded_page_bytes, alignment) * alignment
    return KvSpec(
        spec.kind,
        spec.block_size,
        spec.state_bytes,
        spec.tokens_per_state,
        spec.window,
        padded_page_bytes=page,
        identity=spec.identity,
    )
