"""The block arithmetic: what vLLM prints for a given amount of memory.

Source: vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py) `get_kv_cache_configs`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.core.engine import ResolvedEngineArgs
from app.core.grouping import Grouping, group_layers
from app.core.kv_spec import RequestLength
from app.core.layer_cache import CacheContext
from app.core.refusals import gib, refuse
from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.result import Cache, CacheGroup
from app.core.start_rules import check_checkpoint_scales
from app.core.units import ceil_div


@dataclass(frozen=True, slots=True, eq=False)
class CacheShape:
    """What a block costs and how many a request needs, before any memory is known.

    `block_size` is the smallest of the groups, as vLLM reports it. `bytes_per_token` is what one
    more token of a long request costs on one rank of the first stage, where it grows at all.
    """

    block_size: int
    bytes_per_block_by_stage: tuple[int, ...]
    blocks_per_request: int
    groups: tuple[CacheGroup, ...]
    grouping: Grouping
    length: RequestLength

    @property
    def bytes_per_block(self) -> int:
        """Bytes of a block on one rank of the first stage."""
        return self.bytes_per_block_by_stage[0]

    @property
    def blocks_in_log(self) -> int:
        """Blocks of a request as the log's concurrency counts them.

        Up to 0.26.0 its bytes in blocks of the first group. Source:
        `get_max_concurrency_for_kv_cache_config` in vllm/v1/core/kv_cache_utils.py.
        """
        pages = self.grouping.counted_pages
        if not pages:
            return self.blocks_per_request
        pairs = zip(self.groups, pages, strict=True)
        return ceil_div(sum(group.blocks_per_request * page for group, page in pairs), pages[0])

    @property
    def bytes_per_token(self) -> float:
        """Bytes that one more token costs on one rank of the first stage, windows left out."""
        growing = sum(
            count / spec.block_size for spec, count in self.grouping.kinds if spec.is_full
        )
        return self.bytes_per_block * growing / self.length.decode_context_parallel_size


def cache_shape(request: SizingRequest, resolved: ResolvedEngineArgs) -> CacheShape:
    """Work out the blocks of a request and their bytes. Raises Refusal."""
    return _shape(_grouping_of(request, resolved), _length(request, resolved))


def cache_for(
    request: SizingRequest,
    resolved: ResolvedEngineArgs,
    available_bytes_per_stage: Sequence[int],
) -> Cache:
    """Work out the cache for the memory each pipeline stage has per card, bytes. Raises Refusal."""
    shape = cache_shape(request, resolved)
    return lay_out(shape, resolved, request.release, available_bytes_per_stage)


def lay_out(
    shape: CacheShape,
    resolved: ResolvedEngineArgs,
    release: Release,
    available_bytes_per_stage: Sequence[int],
) -> Cache:
    """Lay a known shape out in the memory of each pipeline stage, bytes. Raises Refusal."""
    if not shape.groups:
        raise refuse(release, "refused_by_vllm", "no_cache")
    available = _given_bytes(shape, resolved, available_bytes_per_stage)
    checked = available if release.override_in_fit_check else available_bytes_per_stage
    blocks = min(
        size // block
        for size, block in zip(available, shape.bytes_per_block_by_stage, strict=True)
        if block
    )
    shape = _fitting(shape, resolved, release, checked)
    tokens, concurrency = _tokens(shape, release, blocks)
    return Cache(
        num_gpu_blocks=blocks,
        block_size=shape.block_size,
        bytes_per_block=shape.bytes_per_block,
        blocks_per_request=shape.blocks_in_log,
        kv_cache_size_tokens=tokens,
        max_concurrency=concurrency,
        max_model_len=shape.length.max_model_len,
        groups=shape.groups,
    )


def _given_bytes(
    shape: CacheShape, resolved: ResolvedEngineArgs, available_bytes_per_stage: Sequence[int]
) -> Sequence[int]:
    """Bytes of each stage for the blocks given by hand, else what the card has left."""
    override = resolved.num_gpu_blocks_override
    if override is None:
        return available_bytes_per_stage
    return [override * block for block in shape.bytes_per_block_by_stage]


def _tokens(shape: CacheShape, release: Release, blocks: int) -> tuple[int, float]:
    """Tokens and concurrency that the log prints; up to 0.20.0 tokens counted in blocks."""
    max_model_len = shape.length.max_model_len
    if release.tokens_rule == "slots":
        tokens = blocks * shape.block_size
        return tokens, tokens / max_model_len
    concurrency = blocks / shape.blocks_in_log
    if release.tokens_rule == "concurrency":
        return int(concurrency * max_model_len), concurrency
    tokens = blocks // len(shape.groups) * shape.block_size
    return tokens * shape.length.decode_context_parallel_size, concurrency


def _fitting(
    shape: CacheShape, resolved: ResolvedEngineArgs, release: Release, available: Sequence[int]
) -> CacheShape:
    """Check that one request fits every stage; with `auto` shorten the length until it does."""
    spare = release.null_block_in_fit_check
    usable = [
        size - block * spare
        for size, block in zip(available, shape.bytes_per_block_by_stage, strict=True)
    ]
    if resolved.auto_fit:
        longest = min(
            longest_length(shape, release, stage, size) for stage, size in enumerate(usable)
        )
        if longest <= 0:
            raise refuse(release, "kv_cache_too_small", "auto_fit_impossible")
        shape = _shape(shape.grouping, _shorter(shape.length, longest))
    for stage, size in enumerate(usable):
        if shape.bytes_per_block_by_stage[stage]:
            _check_stage(shape, release, stage, size)
    return shape


def _check_stage(shape: CacheShape, release: Release, stage: int, usable: int) -> None:
    max_model_len = shape.length.max_model_len
    if usable <= 0:
        raise refuse(
            release,
            "no_memory_for_kv_cache",
            available_bytes=usable,
            max_model_len=max_model_len,
        )
    needed = _needed_bytes(shape.grouping, shape.length, release, stage)
    if needed <= usable:
        return
    estimate = longest_length(shape, release, stage, usable)
    text = release.error("kv_cache_too_small_estimate")
    raise refuse(
        release,
        "kv_cache_too_small",
        max_model_len=max_model_len,
        needed_bytes=needed,
        available_bytes=usable,
        needed_gib=gib(needed),
        available_gib=gib(usable),
        estimate=text.format(estimated_max_model_len=estimate) if estimate else "",
        estimated_max_model_len=estimate,
    )


def longest_length(shape: CacheShape, release: Release, stage: int, usable: int) -> int:
    """Longest length of which one request fits a stage, 0 where not even one token does.

    Source: `_estimate_max_model_len_from_groups`, a binary search.
    """
    lengths = range(1, shape.length.max_model_len + 1)

    def needed(max_model_len: int) -> int:
        length = _shorter(shape.length, max_model_len)
        return _needed_bytes(shape.grouping, length, release, stage)

    return bisect_right(lengths, usable, key=needed)


def _needed_bytes(grouping: Grouping, length: RequestLength, release: Release, stage: int) -> int:
    """Bytes that one request takes on a stage, as the start check of the release counts them."""
    if release.fit_check_counts_padding:
        return grouping.checked_bytes_by_stage[stage] * grouping.blocks_per_request(length)
    return sum(size * spec.blocks_per_request(length) for spec, size in grouping.layer_bytes[stage])


def _shorter(length: RequestLength, max_model_len: int) -> RequestLength:
    return RequestLength(
        max_model_len,
        length.max_in_flight_tokens,
        length.decode_context_parallel_size,
        length.encoder_tokens,
    )


def _length(request: SizingRequest, resolved: ResolvedEngineArgs) -> RequestLength:
    return RequestLength(
        resolved.max_model_len,
        resolved.max_in_flight_tokens,
        request.layout.decode_context_parallel_size,
        resolved.max_num_batched_tokens,
    )


@lru_cache(maxsize=4096)
def _shape(grouping: Grouping, length: RequestLength) -> CacheShape:
    groups = tuple(
        CacheGroup(
            kind=group.first.kind,
            num_layers=len(group.layers),
            block_size=group.first.block_size or length.max_model_len,
            page_size_bytes=group.first.page_size_bytes,
            blocks_per_request=group.first.blocks_per_request(length),
        )
        for group in grouping.groups
    )
    return CacheShape(
        block_size=min((group.block_size for group in groups), default=0),
        bytes_per_block_by_stage=grouping.bytes_per_block_by_stage,
        blocks_per_request=sum(group.blocks_per_request for group in groups),
        groups=groups,
        grouping=grouping,
        length=length,
    )


def _grouping_of(request: SizingRequest, resolved: ResolvedEngineArgs) -> Grouping:
    layout = request.layout
    context = CacheContext(
        release=request.release,
        capability=request.gpu.compute_capability,
        gpu_name=request.gpu.name,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        decode_context_parallel_size=layout.decode_context_parallel_size,
        cache_dtype=resolved.cache_dtype,
        dtype=resolved.dtype,
        user_block_size=resolved.user_block_size,
        hybrid_manager=not resolved.disable_hybrid_kv_cache_manager,
        mamba_cache_mode=resolved.mamba_cache_mode,
        ssm_dtype=resolved.mamba_ssm_cache_dtype,
        num_speculative_tokens=resolved.num_speculative_tokens,
        draft_layers=resolved.draft_layers,
        mm_prefix=request.model.mm_prefix and not resolved.language_model_only,
    )
    grouping = group_layers(request.model, context)
    check_checkpoint_scales(request, resolved.cache_dtype)
    return grouping
