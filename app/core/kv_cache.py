"""The block arithmetic: what vLLM prints for a given amount of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.engine import ResolvedEngineArgs
from app.core.kv_dtypes import element_bytes
from app.core.model_spec import AttentionSpec
from app.core.refusals import gib, refuse
from app.core.request import SizingRequest
from app.core.result import Cache, CacheGroup
from app.core.units import ceil_div

DEFAULT_BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a block costs and how many a request needs, before any memory is known.

    `bytes_per_block_by_stage` has one entry per pipeline stage, bytes on one rank.
    """

    block_size: int
    bytes_per_block_by_stage: tuple[int, ...]
    blocks_per_request: int


def cache_shape(request: SizingRequest, resolved: ResolvedEngineArgs) -> CacheShape:
    """Work out the blocks of a request and their bytes. Raises Refusal."""
    block_size = resolved.user_block_size or DEFAULT_BLOCK_SIZE
    tp = request.layout.tensor_parallel_size
    pages = 0
    for layer in request.model.layers:
        spec = layer.cache
        if isinstance(spec, AttentionSpec):
            content = (spec.head_size + spec.head_size_v) * element_bytes(
                resolved.cache_dtype, resolved.dtype
            )
            pages += max(1, spec.num_kv_heads // tp) * block_size * content
    return CacheShape(block_size, (pages,), ceil_div(resolved.max_model_len, block_size))


def cache_for(
    request: SizingRequest,
    resolved: ResolvedEngineArgs,
    available_bytes_per_stage: Sequence[int],
) -> Cache:
    """Work out the cache for the memory each pipeline stage has per card, bytes. Raises Refusal."""
    shape = cache_shape(request, resolved)
    bytes_per_block = shape.bytes_per_block_by_stage[0]
    available = available_bytes_per_stage[0]
    blocks = available // bytes_per_block
    needed = bytes_per_block * shape.blocks_per_request
    usable = available - bytes_per_block * request.release.null_block_in_fit_check
    if needed > usable:
        raise refuse(
            request.release,
            "kv_cache_too_small",
            max_model_len=resolved.max_model_len,
            needed_gib=gib(needed),
            available_gib=gib(usable),
            estimate="",
        )
    concurrency = blocks / shape.blocks_per_request
    group = CacheGroup(
        "full_attention",
        len(request.model.layers),
        shape.block_size,
        bytes_per_block // len(request.model.layers),
        shape.blocks_per_request,
    )
    return Cache(
        num_gpu_blocks=blocks,
        block_size=shape.block_size,
        bytes_per_block=bytes_per_block,
        blocks_per_request=shape.blocks_per_request,
        kv_cache_size_tokens=int(concurrency * resolved.max_model_len),
        max_concurrency=concurrency,
        max_model_len=resolved.max_model_len,
        groups=(group,),
    )
