"""When preemptions begin: the chance that requests at random moments do not fit the cache together.

Definition. n requests are in flight, each met at a random moment of its life (`workload.py`), each
independent of the others. Together they hold the sum of their blocks. vLLM preempts when a running
request needs a block and none is free, so preemption begins with the probability that this sum
exceeds the blocks of the pool. It is the share of time in which a server that is kept at n requests
would have to preempt one.

The blocks of one request are counted exactly; the tail of their sum is a saddlepoint approximation
for whole numbers (Lugannani and Rice), for one and two requests exact.
Source of the rules: vllm/v1/core/single_type_kv_cache_manager.py (`get_num_skipped_tokens`,
`remove_skipped_blocks`), vllm/v1/core/block_pool.py (one null block).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

from app.core.grouping import Grouping
from app.core.kv_cache import CacheShape
from app.core.kv_spec import KvSpec, RequestLength
from app.core.units import ceil_div
from app.core.workload import Moment, Workload, moments

NULL_BLOCKS = 1
_SAMPLES = 4096
_ATOMS = 256
_MOST_STEPS = 80
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """What one request holds at a random moment: `blocks[i]` with probability `weights[i]`.

    `shared` blocks of a common prefix are held once by all requests together. Ascending.
    """

    blocks: tuple[float, ...]
    weights: tuple[float, ...]
    shared: int

    @property
    def mean(self) -> float:
        """Blocks that a request holds on average, the shared ones left out."""
        return sum(size * weight for size, weight in zip(self.blocks, self.weights, strict=True))


def held_blocks(workload: Workload, shape: CacheShape, *, prefix_caching: bool) -> HeldBlocks:
    """Count the blocks of a random request at a random moment; empty where none is accepted."""
    prefix = workload.shared_prefix_tokens if prefix_caching else 0
    length = shape.length._replace(max_in_flight_tokens=0)
    return _held(workload, _without_bytes(shape.grouping), length, prefix)


@lru_cache(maxsize=4096)
def _without_bytes(grouping: Grouping) -> tuple[tuple[KvSpec, int], ...]:
    """Keep of the groups what decides blocks, so that cards of equal blocks share an answer."""
    return tuple(
        (replace(spec, state_bytes=0, padded_page_bytes=None, identity=()), count)
        for spec, count in grouping.kinds
    )


@lru_cache(maxsize=512)
def _held(
    workload: Workload, kinds: tuple[tuple[KvSpec, int], ...], length: RequestLength, prefix: int
) -> HeldBlocks:
    met = moments(workload, length.max_model_len)
    found: dict[int, float] = {}
    for moment in met:
        for tokens, weight in _samples(moment, max(16, _SAMPLES // len(met))):
            blocks = sum(count * _own_blocks(spec, tokens, length, prefix) for spec, count in kinds)
            found[blocks] = found.get(blocks, 0.0) + weight
    shared = sum(count * _shared_blocks(spec, prefix, length) for spec, count in kinds)
    sizes, weights = _merged(sorted(found.items()))
    return HeldBlocks(sizes, weights, shared)


def blocks_of(spec: KvSpec, tokens: int, length: RequestLength) -> int:
    """Blocks of one group that a request holds while its token number `tokens` is computed.

    Windows have freed what lies wholly before them; states take theirs whatever the length, and
    one more for every block of tokens where each keeps its state.
    """
    if spec.kind == "mamba":
        every = ceil_div(tokens, spec.block_size) if spec.state_every_block else 0
        return spec.state_blocks + every
    if spec.kind == "cross_attention":
        return ceil_div(length.encoder_tokens, spec.block_size)
    if spec.is_full:
        return ceil_div(ceil_div(tokens, length.decode_context_parallel_size), spec.block_size)
    window = spec.window or 1
    if spec.kind == "chunked_local":
        skipped = (tokens - 1) // window * window
    else:
        skipped = max(0, tokens - window - spec.retained_tokens)
    return ceil_div(tokens, spec.block_size) - skipped // spec.block_size


def preemption_probability(held: HeldBlocks, requests: int, num_blocks: int) -> float:
    """Chance that so many requests at random moments hold more blocks than there are."""
    usable = num_blocks - NULL_BLOCKS - held.shared
    if requests <= 0 or requests * held.blocks[-1] <= usable:
        return 0.0
    if requests * held.blocks[0] > usable:
        return 1.0
    if requests == 1:
        return _above(held, usable)
    if requests == 2:  # noqa: PLR2004 - a pair
        pairs = zip(held.blocks, held.weights, strict=True)
        return sum(weight * _above(held, usable - size) for size, weight in pairs)
    return min(1.0, max(0.0, _tail(held, requests, usable + 0.5)))


def requests_at(held: HeldBlocks, probability: float, num_blocks: int) -> int:
    """Most requests in flight with which preemption begins with at most that probability."""
    usable = num_blocks - NULL_BLOCKS - held.shared
    fits, fails, step = 0, max(1, _by_normal_law(held, probability, usable)), 1
    while preemption_probability(held, fails, num_blocks) <= probability:
        fits, fails, step = fails, fails + step, 2 * step
    while fails - fits > step:
        if preemption_probability(held, fails - step, num_blocks) <= probability:
            fits = fails - step
        else:
            fails, step = fails - step, 2 * step
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if preemption_probability(held, middle, num_blocks) <= probability:
            fits = middle
        else:
            fails = middle
    return fits


def _by_normal_law(held: HeldBlocks, probability: float, usable: int) -> int:
    """Where the search begins: what the normal law would give, a few requests off at most."""
    mean, spread = held.mean, _NORMAL.inv_cdf(1 - probability) * math.sqrt(_variance(held))
    root = math.sqrt(spread * spread + 4 * mean * max(0, usable)) - spread
    return int((root / (2 * mean)) ** 2) if mean else 1


def _own_blocks(spec: KvSpec, tokens: int, length: RequestLength, prefix: int) -> int:
    return blocks_of(spec, tokens, length) - _shared_blocks(spec, min(prefix, tokens), length)


def _shared_blocks(spec: KvSpec, prefix: int, length: RequestLength) -> int:
    """Full blocks of a common prefix; only layers that keep every token can share them."""
    if not spec.is_full:
        return 0
    return prefix // (spec.block_size * length.decode_context_parallel_size)


def _samples(moment: Moment, most: int) -> Iterable[tuple[int, float]]:
    """Every number of tokens of a moment, or `most` evenly spread ones."""
    span = moment.most - moment.fewest + 1
    parts = min(span, most)
    for part in range(parts):
        yield moment.fewest + span * (2 * part + 1) // (2 * parts), moment.weight / parts


def _merged(
    found: list[tuple[int, float]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Join neighbours to at most 256 sizes; the mean stays."""
    if len(found) <= _ATOMS:
        return tuple(float(size) for size, _ in found), tuple(weight for _, weight in found)
    width = (found[-1][0] - found[0][0]) / _ATOMS
    bins: dict[int, tuple[float, float]] = {}
    for size, weight in found:
        place = int((size - found[0][0]) / width)
        mass, moment = bins.get(place, (0.0, 0.0))
        bins[place] = (mass + weight, moment + weight * size)
    masses = [bins[place] for place in sorted(bins)]
    return tuple(moment / mass for mass, moment in masses), tuple(mass for mass, _ in masses)


def _above(held: HeldBlocks, limit: float) -> float:
    sums = (0.0, *accumulate(held.weights))
    return max(0.0, 1 - sums[bisect_right(held.blocks, limit)])


def _tail(held: HeldBlocks, requests: int, threshold: float) -> float:
    """Chance that the sum of `requests` independent sizes exceeds the threshold.

    Source: R. Lugannani and S. Rice, Adv. Appl. Prob. 12 (1980), with the lattice factor of
    H. E. Daniels, Int. Stat. Rev. 55 (1987).
    """
    target = threshold / requests
    slope = _saddlepoint(held, target)
    log_moment, _, variance = _cumulants(held, slope)
    exponent = 2 * requests * (slope * target - log_moment)
    if exponent < 1e-7:  # noqa: PLR2004 - at the mean both terms below are infinite
        return 0.5 - _skewness(held) / (6 * math.sqrt(2 * math.pi * requests))
    root = math.copysign(math.sqrt(exponent), slope)
    lattice = 2 * math.sinh(slope / 2) * math.sqrt(requests * variance)
    density = math.exp(-exponent / 2) / math.sqrt(2 * math.pi)
    return 1 - _NORMAL.cdf(root) + density * (1 / lattice - 1 / root)


def _saddlepoint(held: HeldBlocks, target: float) -> float:
    """Slope at which the tilted mean is the target: Newton's method, kept in a bracket."""
    step = 1 / (1 + held.blocks[-1])
    low = high = 0.0
    if held.mean > target:
        low = -step
        while _cumulants(held, low)[1] > target:
            low *= 2
    else:
        high = step
        while _cumulants(held, high)[1] < target:
            high *= 2
    slope, moved, steps = 0.0, math.inf, 0
    while moved > 1e-12 * max(1e-6, abs(slope)) and steps < _MOST_STEPS:
        _, mean, variance = _cumulants(held, slope)
        if mean > target:
            high = slope
        else:
            low = slope
        better = slope + (target - mean) / variance if variance > 0 else (low + high) / 2
        if not low < better < high:
            better = (low + high) / 2
        slope, moved, steps = better, abs(better - slope), steps + 1
    return slope


def _cumulants(held: HeldBlocks, slope: float) -> tuple[float, float, float]:
    """Logarithm of the moment-generating function at `slope`, its first two derivatives."""
    largest = max(slope * held.blocks[0], slope * held.blocks[-1])
    total = first = second = 0.0
    for size, weight in zip(held.blocks, held.weights, strict=True):
        tilted = weight * math.exp(slope * size - largest)
        total += tilted
        first += tilted * size
        second += tilted * size * size
    mean = first / total
    return largest + math.log(total), mean, second / total - mean * mean


def _variance(held: HeldBlocks) -> float:
    mean = held.mean
    pairs = zip(held.blocks, held.weights, strict=True)
    return sum(weight * (size - mean) ** 2 for size, weight in pairs)


def _skewness(held: HeldBlocks) -> float:
    mean = held.mean
    pairs = zip(held.blocks, held.weights, strict=True)
    variance = _variance(held)
    third = sum(weight * (size - mean) ** 3 for size, weight in pairs)
    return 0.0 if variance == 0 else third / variance**1.5
