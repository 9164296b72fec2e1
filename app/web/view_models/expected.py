"""The figure of the log over all copies, and why it is not the planning figure."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.memory_bar import BESIDE_THE_BUDGET
from app.core.planning import (
    PLANNING_RESERVE_BYTES,
    PLANNING_UTILIZATION,
    copy_weights_bytes,
    planning_memory_bytes,
)
from app.core.sizing import SizingResult


@dataclass(frozen=True, slots=True)
class Expected:
    """Concurrency in the log: `low` to `high` over all engines, `engine_*` for one of them.

    `is_exact` where the memory was given or measured and the arithmetic has no range. `cold` and
    `warm` are one engine's figures for an empty and a filled compile cache, None where they are the
    same.
    """

    engines: int
    low: float
    likely: float
    high: float
    tokens_low: int
    tokens_high: int
    is_exact: bool
    cold: float | None
    warm: float | None
    widest_term: str | None

    @property
    def engine_low(self) -> float:
        """Low end of the figure that one engine prints."""
        return self.low / self.engines

    @property
    def engine_high(self) -> float:
        """High end of the figure that one engine prints."""
        return self.high / self.engines


@dataclass(frozen=True, slots=True)
class CardBudget:
    """How one card's memory becomes cache by one of the two ways, bytes."""

    card_bytes: int
    utilization: float
    reserve_bytes: int
    weights_bytes: int
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both ways beside each other, per card."""

    planning: CardBudget
    log: CardBudget


def expected_of(result: SizingResult) -> Expected | None:
    """Return the log's figure; None where vLLM refuses or no memory is estimated."""
    cache = result.cache
    if cache is None:
        return None
    engines = result.request.layout.engines
    likely = cache.max_concurrency
    concurrency, tokens = result.concurrency_range, result.tokens_range
    return Expected(
        engines=engines,
        low=(concurrency.low if concurrency else likely) * engines,
        likely=likely * engines,
        high=(concurrency.high if concurrency else likely) * engines,
        tokens_low=int(tokens.low) if tokens else cache.kv_cache_size_tokens,
        tokens_high=int(tokens.high) if tokens else cache.kv_cache_size_tokens,
        is_exact=concurrency is None or concurrency.low == concurrency.high,
        cold=result.cold_concurrency,
        warm=result.warm_concurrency,
        widest_term=result.widest_term,
    )


def comparison_of(result: SizingResult) -> Comparison | None:
    """Lay planning rule and log side by side; None where one of them has no figures."""
    plan, card_bytes = result.planning, planning_memory_bytes(result.request)
    terms = {term.code: term.likely for term in result.memory}
    given = result.concurrency_range is None
    if plan is None or card_bytes is None or result.resolved is None or given or not terms:
        return None
    layout = result.request.layout
    utilization = result.request.engine_args.gpu_memory_utilization or PLANNING_UTILIZATION
    planned = CardBudget(
        card_bytes=card_bytes,
        utilization=utilization,
        reserve_bytes=PLANNING_RESERVE_BYTES,
        weights_bytes=copy_weights_bytes(result.request, result.resolved)
        // layout.cards_per_engine,
        cache_bytes=plan.pool_bytes // layout.cards,
    )
    others = sum(terms.values()) - sum(
        terms.get(code, 0) for code in ("weights", "kv_cache", *BESIDE_THE_BUDGET)
    )
    logged = CardBudget(
        card_bytes=sum(terms.values()),
        utilization=result.resolved.gpu_memory_utilization,
        reserve_bytes=others,
        weights_bytes=terms.get("weights", 0),
        cache_bytes=terms.get("kv_cache", 0),
    )
    return Comparison(planned, logged)
