"""What the start log is expected to print, as a range: the block arithmetic at both ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    available = deciding.available
    tokens = concurrency = cold = warm = None
    if cache is not None:
        low = _blocks(stages, shape, lambda stage: stage.available.low)
        high = _blocks(stages, shape, lambda stage: stage.available.high)
        concurrency = Range(
            low / cache.blocks_per_request, cache.max_concurrency, high / cache.blocks_per_request
        )
        per_block = cache.kv_cache_size_tokens / cache.num_gpu_blocks
        tokens = Range(int(low * per_block), cache.kv_cache_size_tokens, int(high * per_block))
        cold_blocks = _blocks(stages, shape, lambda stage: stage.available_after(stage.cold_peak))
        warm_blocks = _blocks(stages, shape, lambda stage: stage.available_after(stage.warm_peak))
        if cold_blocks != warm_blocks:
            cold = cold_blocks / cache.blocks_per_request
            warm = warm_blocks / cache.blocks_per_request
    return Expectation(
        Range(available.low, available.likely, available.high),
        tokens,
        concurrency,
        cold,
        warm,
        _widest_term(deciding),
    )


def binding_stage(stages: Sequence[StageMemory], shape: CacheShape) -> StageMemory:
    """Find the stage whose card holds the fewest blocks."""
    costs = shape.bytes_per_block_by_stage
    pairs = zip(stages, costs, strict=True)
    return min(pairs, key=lambda pair: pair[0].available.likely / max(1, pair[1]))[0]


def _blocks(
    stages: Sequence[StageMemory], shape: CacheShape, memory: Callable[[StageMemory], float]
) -> int:
    return min(
        max(0, int(memory(stage))) // cost
        for stage, cost in zip(stages, shape.bytes_per_block_by_stage, strict=True)
        if cost
    )


def _widest_term(stage: StageMemory) -> str:
    spreads = [(term.high - term.low, code) for code, term in stage.terms()]
    spreads.append((stage.unexplained.high - stage.unexplained.low, "unexplained"))
    spreads.append((stage.requested.high - stage.requested.low, "total_memory"))
    return max(spreads)[1]
