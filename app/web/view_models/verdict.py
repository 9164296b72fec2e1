"""The first sentence of a result: does it fit, how many requests, by how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.core.kv_cache import cache_shape
from app.core.planning import copy_weights_bytes, left_for_cache_bytes
from app.core.reasons import Reason, Refusal
from app.core.sizing import SizingResult
from app.core.units import GIB

State = Literal["fits", "tight", "no"]
FEW_REQUESTS = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is promised, and how far it is from what is needed.

    `concurrency` is the cautious figure behind `requests`, unrounded, over all copies. `needed` is
    the measured peak, or 1. `margin_bytes` is cache beyond the needed requests over all cards,
    negative when short; None where vLLM refuses for another reason than memory.
    """

    state: State
    requests: int
    concurrency: float | None
    max_model_len: int | None
    needed: int
    margin_bytes: int | None


def verdict_of(result: SizingResult, peak_requests: int | None = None) -> Verdict:
    """Judge a result against the measured peak of requests, or against one request."""
    needed = peak_requests or 1
    concurrency = cautious_concurrency(result)
    margin = _margin_bytes(result, concurrency, needed)
    return Verdict(
        state=_state(result, needed),
        requests=result.verdict_requests,
        concurrency=concurrency,
        max_model_len=result.resolved.max_model_len if result.resolved else None,
        needed=needed,
        margin_bytes=margin,
    )


def refused(peak_requests: int | None = None) -> Verdict:
    """Judge a model that cannot be sized at all."""
    return Verdict("no", 0, None, None, peak_requests or 1, None)


def cautious_concurrency(result: SizingResult) -> float | None:
    """Return the lower of the planning figure and the low end of the log's, over all copies."""
    engines = result.request.layout.engines
    figures = []
    if result.planning is not None:
        figures.append(result.planning.max_concurrency)
    if result.concurrency_range is not None:
        figures.append(result.concurrency_range.low * engines)
    elif result.cache is not None:
        figures.append(result.cache.max_concurrency * engines)
    return min(figures, default=None)


def request_bytes(result: SizingResult) -> int | None:
    """Return the cache that one request of full length takes on all cards of its copy, bytes."""
    if result.resolved is None:
        return None
    try:
        shape = cache_shape(result.request, result.resolved)
    except Refusal:
        return None
    cards = result.request.layout.tensor_parallel_size
    return cards * sum(shape.bytes_per_block_by_stage) * shape.blocks_per_request


def _state(result: SizingResult, needed: int) -> State:
    if not result.ok or result.verdict_requests == 0:
        return "no"
    if result.verdict_requests < max(needed, FEW_REQUESTS):
        return "tight"
    return "fits"


def _margin_bytes(result: SizingResult, concurrency: float | None, needed: int) -> int | None:
    """Return the smaller of the margins that are known: what is cautious is shown."""
    margins = [] if result.reason is None else [*_shortage(result.reason)]
    size = request_bytes(result)
    if concurrency is not None and size is not None:
        margins.append(int((concurrency - needed) * size))
        margins.extend(left - needed * size for left in _overdrawn(result))
    return min(margins, default=None)


def _overdrawn(result: SizingResult) -> Iterator[int]:
    """Yield what weights alone take beyond the planning rule's memory, over all copies."""
    if result.resolved is None:
        return
    left = left_for_cache_bytes(result.request, copy_weights_bytes(result.request, result.resolved))
    if left is not None and left < 0:
        yield left * result.request.layout.engines


def _shortage(reason: Reason) -> Iterator[int]:
    """Read from a refusal by how much memory falls short, as negative bytes."""
    numbers = dict(reason.numbers)
    if "missing_bytes" in numbers:
        yield -int(numbers["missing_bytes"])
    elif "needed_gib" in numbers and "available_gib" in numbers:
        yield int((float(numbers["available_gib"]) - float(numbers["needed_gib"])) * GIB)
    elif "requested_gib" in numbers and "free_gib" in numbers:
        yield int((float(numbers["free_gib"]) - float(numbers["requested_gib"])) * GIB)
