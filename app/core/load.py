"""From the printed figure to a service: the measured load against cache and batch limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.kv_cache import cache_shape
from app.core.reasons import Number
from app.core.result import SizingResult

LoadCode = Literal[
    "length_realistic",
    "length_longer_than_needed",
    "length_too_short",
    "peak_fits",
    "peak_exceeds_worst_case",
    "peak_exceeds_batch",
    "cache_reached_first",
    "batch_reached_first",
]
ROOM_FOR_LENGTH = 1.25


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured: requests in flight at the peak, and their length in tokens."""

    peak_requests: int | None = None
    mean_request_tokens: int | None = None
    p95_request_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """One check: a code and the numbers it compared."""

    code: LoadCode
    numbers: tuple[tuple[str, Number], ...]


def check_load(result: SizingResult, load: Load) -> tuple[LoadCheck, ...]:
    """Compare a measured load with the cautious end of what is printed, over all engines.

    1. Does the declared length fit what is sent? 2. Is the peak below the printed figure: the cache
    cannot fill even if all requests are long; above it: preemptions begin once enough long ones
    meet. 3. At real lengths, is the cache or `max_num_seqs` reached first? Checks without a
    measurement are left out, and all of them where no cache fits.
    """
    if result.cache is None or result.resolved is None:
        return ()
    checks = (_length(result, load), _peak(result, load), _first_limit(result, load))
    return tuple(check for check in checks if check is not None)


def concurrency_at(result: SizingResult, request_tokens: int) -> float:
    """Requests of a given length that the cautious end of the cache holds, over all engines.

    Windows and states cost what they cost at that length. Raises ValueError without a cache.
    """
    cache, resolved = result.cache, result.resolved
    if cache is None or resolved is None:
        raise ValueError("no cache")
    length = max(1, min(request_tokens, cache.max_model_len))
    shape = cache_shape(result.request, replace(resolved, max_model_len=length))
    share = 1.0
    if result.concurrency_range is not None:
        share = result.concurrency_range.low / result.concurrency_range.likely
    engines = result.request.layout.engines
    return cache.num_gpu_blocks * share / shape.blocks_per_request * engines


def _length(result: SizingResult, load: Load) -> LoadCheck | None:
    longest = load.p95_request_tokens
    if longest is None or result.cache is None:
        return None
    declared = result.cache.max_model_len
    code: LoadCode = "length_realistic"
    if longest > declared:
        code = "length_too_short"
    elif longest * ROOM_FOR_LENGTH < declared:
        code = "length_longer_than_needed"
    return LoadCheck(code, (("p95_request_tokens", longest), ("max_model_len", declared)))


def _peak(result: SizingResult, load: Load) -> LoadCheck | None:
    peak = load.peak_requests
    if peak is None or result.resolved is None:
        return None
    engines = result.request.layout.engines
    worst_case = _cautious_concurrency(result) * engines
    batch = result.resolved.max_num_seqs * engines
    code: LoadCode = "peak_fits"
    if peak > batch:
        code = "peak_exceeds_batch"
    elif peak > worst_case:
        code = "peak_exceeds_worst_case"
    return LoadCheck(
        code,
        (("peak_requests", peak), ("max_concurrency", worst_case), ("max_num_seqs", batch)),
    )


def _first_limit(result: SizingResult, load: Load) -> LoadCheck | None:
    mean = load.mean_request_tokens
    if mean is None or result.resolved is None:
        return None
    batch = result.resolved.max_num_seqs * result.request.layout.engines
    real = concurrency_at(result, mean)
    code: LoadCode = "cache_reached_first" if real < batch else "batch_reached_first"
    return LoadCheck(
        code,
        (("mean_request_tokens", mean), ("real_concurrency", real), ("max_num_seqs", batch)),
    )


def _cautious_concurrency(result: SizingResult) -> float:
    if result.concurrency_range is not None:
        return result.concurrency_range.low
    return 0.0 if result.cache is None else result.cache.max_concurrency
