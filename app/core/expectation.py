"""What the start log is expected to print, as a range: the block arithmetic at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.kv_cache import CacheShape
from app.core.memory import StageMemory
from app.core.result import Cache, Range


@dataclass(frozen=True, slots=True)
class Expectation:
    """Figures of one engine over the range of its memory.

    `available` is that of the stage which decides the number of blocks, bytes per card. The ranges
    of tokens and concurrency are None where no cache fits. `cold_concurrency` and
    `warm_concurrency` are None where the compile cache makes no difference. Without an estimate
    everything is None.
    """

    available: Range | None = None
    tokens: Range | None = None
    concurrency: Range | None = None
    cold_concurrency: float | None = None
    warm_concurrency: float | None = None
    widest_term: str | None = None


def expectation(
    stages: Sequence[StageMemory], shape: CacheShape, cache: Cache | None
) -> Expectation:
    """Lay the cache out at the cautious, the likely and the hopeful end of the memory.

    The tightest stage decides at each end.
    """
    deciding = binding_stage(stages, shape)
    left = deciding.available
    available, widest = Range(left.low, left.likely, left.high), _widest_term(deciding)
    if cache is None:
        return Expectation(available, widest_term=widest)
    low = _blocks([stage.available.low for stage in stages], shape)
    high = _blocks([stage.available.high for stage in stages], shape)
    per_request = cache.blocks_per_request
    per_block = cache.kv_cache_size_tokens / cache.num_gpu_blocks
    cold = warm = None
    if any(stage.cold_peak > stage.warm_peak for stage in stages):
        cold = _blocks([stage.available_after(stage.cold_peak) for stage in stages], shape)
        warm = _blocks([stage.available_after(stage.warm_peak) for stage in stages], shape)
    return Expectation(
        available,
        Range(int(low * per_block), cache.kv_cache_size_tokens, int(high * per_block)),
        Range(low / per_request, cache.max_concurrency, high / per_request),
        None if cold is None else cold / per_request,
        None if warm is None else warm / per_request,
        widest,
    )


def binding_stage(stages: Sequence[StageMemory], shape: CacheShape) -> StageMemory:
    """Find the stage whose card holds the fewest blocks."""
    if len(stages) == 1:
        return stages[0]
    pairs = zip(stages, shape.bytes_per_block_by_stage, strict=True)
    return min(pairs, key=lambda pair: pair[0].available.likely / max(1, pair[1]))[0]


def _blocks(available: Sequence[float], shape: CacheShape) -> int:
    """Blocks that the tightest stage holds; a stage without cache does not count."""
    return min(
        max(0, int(size)) // cost
        for size, cost in zip(available, shape.bytes_per_block_by_stage, strict=True)
        if cost
    )


def _widest_term(stage: StageMemory) -> str:
    """Name the term whose spread is largest."""
    spreads = {code: term.high - term.low for code, term in stage.terms()}
    spreads["unexplained"] = stage.unexplained.high - stage.unexplained.low
    spreads["total_memory"] = stage.requested.high - stage.requested.low
    return max(spreads, key=spreads.__getitem__)
