"""The one public verb of the core: `size()`.

The types live in `request.py` and `result.py`; rooms outside the core import them from here.
Modules of the core that `size()` calls import them from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from app.core.assumptions import estimate_assumptions, given_assumptions
from app.core.budget import CardMemory, card_memory, requested_memory
from app.core.carry_over import carry_over
from app.core.engine import ResolvedEngineArgs
from app.core.engine_defaults import resolve_engine_args
from app.core.expectation import Expectation, binding_stage, expectation
from app.core.failures import check_start, check_state_slots
from app.core.kv_cache import CacheShape, cache_shape, lay_out
from app.core.log_lines import log_lines
from app.core.memory import StageMemory, Start
from app.core.memory_bar import memory_bar
from app.core.planning import copy_weights_bytes, planning
from app.core.reasons import Reason, Refusal
from app.core.refusals import refuse
from app.core.request import Measured, SizingRequest
from app.core.result import (
    Assumption,
    Cache,
    CacheGroup,
    MemoryTerm,
    Planning,
    Range,
    SizingResult,
)
from app.core.weights import checkpoint_bytes, weights_bytes_per_rank

__all__ = [
    "Assumption",
    "Cache",
    "CacheGroup",
    "Measured",
    "MemoryTerm",
    "Planning",
    "Range",
    "SizingRequest",
    "SizingResult",
    "measured_here",
    "predicted_terms",
    "size",
]


CACHED_PLANS = 32768


@dataclass(frozen=True, slots=True)
class _Estimate:
    """One engine's start on a card whose memory is known."""

    start: Start
    card: CardMemory
    stages: tuple[StageMemory, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is settled before the cache is laid out: the same for every copy of a layout.

    `weights` are bytes per rank of each pipeline stage, `copy_bytes` those the planning rule counts
    for one copy. `estimate` is None where release or card give no ground for one; then `memory`,
    the bar of one card, is empty.
    """

    resolved: ResolvedEngineArgs
    weights: tuple[int, ...]
    shape: CacheShape
    checkpoint_bytes: int
    copy_bytes: int
    estimate: _Estimate | None
    memory: tuple[MemoryTerm, ...]
    assumptions: tuple[Assumption, ...]


def size(request: SizingRequest) -> SizingResult:
    """Answer what vLLM would print at start, per engine, and what may be promised for all copies.

    Never raises for a request of valid types: what vLLM refuses comes back as `reason`.
    """
    if request.measured.taken_on is not None:
        held = replace(request, measured=measured_here(request))
        return replace(size(held), request=request)
    alone = request
    if request.layout.replicas > 1:
        alone = replace(request, layout=replace(request.layout, replicas=1))
    plan = _plan(alone)
    if isinstance(plan, Reason):
        return _refused(request, plan)
    reason, cache = None, None
    try:
        cache = _cache(request, plan)
    except Refusal as refusal:
        reason = refusal.reason
    return _answer(request, plan, cache, reason)


def measured_here(request: SizingRequest) -> Measured:
    """Return what was measured on another server as far as it holds for this one."""
    measured, there = request.measured, request.measured.taken_on
    if there is None:
        return measured
    return carry_over(measured, there, request, predicted_terms(there), predicted_terms(request))


def predicted_terms(request: SizingRequest) -> Mapping[str, MemoryTerm]:
    """Estimate each term of a card by its code, nothing taken as measured; empty without one."""
    return {term.code: term for term in size(replace(request, measured=Measured())).memory}


@lru_cache(maxsize=CACHED_PLANS)
def _plan(request: SizingRequest) -> _Plan | Reason:
    """Settle all that comes before the cache; a refusal is kept like an answer."""
    try:
        resolved = resolve_engine_args(request)
        weights = weights_bytes_per_rank(request, resolved)
        shape = cache_shape(request, resolved)
        copy_bytes = copy_weights_bytes(request, resolved)
    except Refusal as refusal:
        return refusal.reason
    estimate = _estimate(request, resolved, weights)
    return _Plan(
        resolved=resolved,
        weights=weights,
        shape=shape,
        checkpoint_bytes=checkpoint_bytes(request.model, request.checkpoint),
        copy_bytes=copy_bytes,
        estimate=estimate,
        memory=_memory(request, shape, estimate),
        assumptions=_assumptions(request, estimate),
    )


def _estimate(
    request: SizingRequest, resolved: ResolvedEngineArgs, weights: tuple[int, ...]
) -> _Estimate | None:
    """Estimate every stage's memory; None where release or card give no ground for it."""
    coefficients = request.release.memory
    if coefficients is None:
        return None
    card = card_memory(request, coefficients)
    if card is None:
        return None
    requested = requested_memory(card.total, resolved.gpu_memory_utilization)
    start = Start(request, resolved, coefficients, requested, weights)
    return _Estimate(start, card, start.stages())


def _cache(request: SizingRequest, plan: _Plan) -> Cache | None:
    """Lay out the cache; None where no memory is estimated for this release. Raises Refusal."""
    estimate = plan.estimate
    given = request.given_cache_bytes
    measured = request.measured.available_kv_cache_memory_bytes is not None
    if estimate is not None and not measured:
        check_start(estimate.start, estimate.card.total, estimate.stages)
    if given is not None:
        available = (given,) * request.layout.pipeline_parallel_size
    elif estimate is not None:
        available = tuple(int(stage.available.likely) for stage in estimate.stages)
    elif request.release.memory is None:
        return None
    else:
        raise refuse(request.release, "gpu_memory_unknown")
    cache = lay_out(plan.shape, plan.resolved, request.release, available)
    if not measured:
        check_state_slots(request, plan.resolved, cache)
    return cache


def _answer(
    request: SizingRequest,
    plan: _Plan,
    cache: Cache | None,
    reason: Reason | None,
) -> SizingResult:
    resolved, shape, estimate = plan.resolved, plan.shape, plan.estimate
    if cache is not None and cache.max_model_len != resolved.max_model_len:
        shape = cache_shape(request, replace(resolved, max_model_len=cache.max_model_len))
    expected = _expected(request, resolved, shape, estimate, cache)
    length = resolved.max_model_len if cache is None else cache.max_model_len
    planned = planning(request, shape, length, plan.copy_bytes)
    return SizingResult(
        request=request,
        resolved=resolved,
        reason=reason,
        cache=cache,
        weights_bytes_per_rank=max(plan.weights),
        checkpoint_bytes=plan.checkpoint_bytes,
        memory=plan.memory,
        available_kv_cache_memory=_available(request, expected),
        tokens_range=expected.tokens,
        concurrency_range=expected.concurrency,
        planning=planned,
        verdict_requests=_verdict(request, planned, cache, expected, reason),
        log_lines=() if cache is None else log_lines(request.release, request.gpu, cache),
        assumptions=plan.assumptions,
        cold_concurrency=expected.cold_concurrency,
        warm_concurrency=expected.warm_concurrency,
        widest_term=expected.widest_term,
        total_memory_bytes=None if estimate is None else int(estimate.card.total.likely),
    )


def _refused(request: SizingRequest, reason: Reason) -> SizingResult:
    """Answer a request that vLLM refuses before it looks at memory."""
    return SizingResult(
        request=request,
        resolved=None,
        reason=reason,
        cache=None,
        weights_bytes_per_rank=None,
        checkpoint_bytes=None,
        memory=(),
        available_kv_cache_memory=None,
        tokens_range=None,
        concurrency_range=None,
        planning=None,
        verdict_requests=0,
        log_lines=(),
        assumptions=tuple(given_assumptions(request)),
    )


def _expected(
    request: SizingRequest,
    resolved: ResolvedEngineArgs,
    shape: CacheShape,
    estimate: _Estimate | None,
    cache: Cache | None,
) -> Expectation:
    """Give the range of an estimate; a given memory or number of blocks has none."""
    if estimate is None or request.given_cache_bytes is not None:
        return Expectation()
    if resolved.num_gpu_blocks_override is not None:
        return Expectation()
    return expectation(estimate.stages, shape, cache)


def _available(request: SizingRequest, expected: Expectation) -> Range | None:
    given = request.given_cache_bytes
    return expected.available if given is None else Range(given, given, given)


def _memory(
    request: SizingRequest, shape: CacheShape, estimate: _Estimate | None
) -> tuple[MemoryTerm, ...]:
    if estimate is None:
        return ()
    stage = binding_stage(estimate.stages, shape)
    return memory_bar(
        stage, estimate.card.total, request.given_cache_bytes, request.other_processes_bytes
    )


def _verdict(
    request: SizingRequest,
    plan: Planning | None,
    cache: Cache | None,
    expected: Expectation,
    reason: Reason | None,
) -> int:
    """Promise no more than the planning rule, and no more than the cautious end of the log."""
    if reason is not None:
        return 0
    figures = [] if plan is None else [plan.requests]
    if cache is not None:
        low = expected.concurrency
        surely = cache.max_concurrency if low is None else low.low
        figures.append(int(surely) * request.layout.engines)
    return min(figures, default=0)


def _assumptions(request: SizingRequest, estimate: _Estimate | None) -> tuple[Assumption, ...]:
    given = tuple(given_assumptions(request))
    if estimate is None:
        return given
    return (*given, *estimate_assumptions(estimate.start, estimate.card))
