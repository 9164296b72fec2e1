"""How many requests of a mix really fit a server, and what limits them first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.kv_cache import CacheShape, cache_shape
from app.core.preemption import held_blocks, preemption_probability, requests_at
from app.core.result import SizingResult
from app.core.workload import Workload

RARELY, SOMETIMES, OFTEN = 0.01, 0.05, 0.5
CURVE_POINTS = 60
CURVE_REACH = 1.35


@dataclass(frozen=True, slots=True)
class RequestMix:
    """Requests in flight over all engines, spread evenly over them.

    `rarely`, `sometimes` and `often` are the most requests with which preemption begins with a
    probability of at most 1 %, 5 % and 50 % on an engine. `batch_limit` is what `max_num_seqs`
    admits. `curve` holds (requests, probability). `accepted` is the share of requests that the
    declared length admits, `sufficient_max_model_len` the length that 999 of 1,000 keep to.
    `num_blocks` are the blocks of one engine at the cautious end of both ways to get the memory,
    `mean_blocks` what a request holds on average.
    """

    rarely: int
    sometimes: int
    often: int
    batch_limit: int
    num_blocks: int
    mean_blocks: float
    accepted: float
    sufficient_max_model_len: int
    curve: tuple[tuple[int, float], ...]

    @property
    def first_limit(self) -> Literal["cache", "batch"]:
        """What is reached first as requests grow: the cache or `max_num_seqs`."""
        return "batch" if self.batch_limit <= self.rarely else "cache"

    @property
    def requests(self) -> int:
        """Requests in flight that may be promised: preemption is rare, and the batch admits all."""
        return min(self.rarely, self.batch_limit)


def request_mix(result: SizingResult, workload: Workload) -> RequestMix | None:
    """Work a mix out for a sized server; None without a cache or without an accepted request."""
    shape = _shape(result)
    if shape is None or result.resolved is None:
        return None
    accepted = workload.accepted(shape.length.max_model_len)
    if not accepted:
        return None
    blocks, engines = cautious_blocks(result), result.request.layout.engines
    held = held_blocks(workload, shape, prefix_caching=result.resolved.enable_prefix_caching)
    counts = [requests_at(held, chance, blocks) for chance in (RARELY, SOMETIMES, OFTEN)]
    last = max(2, round(counts[-1] * CURVE_REACH))
    step = max(1, last // CURVE_POINTS)
    curve = tuple(
        (engines * count, preemption_probability(held, count, blocks))
        for count in range(1, last + step, step)
    )
    return RequestMix(
        rarely=engines * counts[0],
        sometimes=engines * counts[1],
        often=engines * counts[2],
        batch_limit=engines * result.resolved.max_num_seqs,
        num_blocks=blocks,
        mean_blocks=held.mean,
        accepted=accepted,
        sufficient_max_model_len=workload.sufficient_max_model_len(),
        curve=curve,
    )


def promised_requests(result: SizingResult, workload: Workload | None) -> int:
    """Requests in flight that may be promised: of the declared length, or of a mix.

    Of a mix: with which preemption begins with at most 1 %, within `max_num_seqs`. Without one: the
    verdict within `max_num_seqs`. 0 where vLLM does not start.
    """
    if result.resolved is None or not result.ok:
        return 0
    engines = result.request.layout.engines
    batch = engines * result.resolved.max_num_seqs
    shape = _shape(result)
    if workload is None or shape is None:
        return min(batch, result.verdict_requests)
    if not workload.accepted(shape.length.max_model_len):
        return 0
    held = held_blocks(workload, shape, prefix_caching=result.resolved.enable_prefix_caching)
    return min(batch, engines * requests_at(held, RARELY, cautious_blocks(result)))


def cautious_blocks(result: SizingResult) -> int:
    """Blocks of one engine: the fewer of the planning rule and the low end of what is expected."""
    cache = result.cache
    if cache is None:
        return 0
    per_request = cache.blocks_per_request
    blocks = cache.num_gpu_blocks
    if result.concurrency_range is not None:
        blocks = min(blocks, round(result.concurrency_range.low * per_request))
    if result.planning is not None:
        engines = result.request.layout.engines
        blocks = min(blocks, round(result.planning.max_concurrency / engines * per_request))
    return blocks


def _shape(result: SizingResult) -> CacheShape | None:
    if result.cache is None or result.resolved is None:
        return None
    length = result.cache.max_model_len
    return cache_shape(result.request, replace(result.resolved, max_model_len=length))
