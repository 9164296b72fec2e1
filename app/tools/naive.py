"""Formulas that others use for the memory of the cache, scored like the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.core.planning import planning_memory_bytes
from app.core.sizing import SizingResult, size
from app.core.units import GIB
from app.tools.scoring import Score, score
from app.tools.starts import Start

Formula = Callable[[SizingResult, float], float | None]


def weights_plus_10_percent(result: SizingResult, weights_bytes: float) -> float | None:
    """Budget minus 1.1 times the weights, bytes per card."""
    budget = _budget(result)
    return None if budget is None else budget - 1.1 * weights_bytes


def weights_plus_3_gib(result: SizingResult, weights_bytes: float) -> float | None:
    """Budget minus weights minus 3 GiB, bytes per card."""
    budget = _budget(result)
    return None if budget is None else budget - weights_bytes - 3 * GIB


def box_gb_as_gib(result: SizingResult, weights_bytes: float) -> float | None:
    """Card's nominal size read as GiB, times utilization, minus weights, bytes per card."""
    driver = result.request.gpu.driver_memory_bytes
    if driver is None or result.resolved is None:
        return None
    nominal = -(-driver // GIB) * GIB
    return nominal * result.resolved.gpu_memory_utilization - weights_bytes


def planning_rule(result: SizingResult, weights_bytes: float) -> float | None:
    """0.9 x driver memory - 3 GiB - weights, bytes per card, whatever utilization was set."""
    driver = planning_memory_bytes(result.request)
    return None if driver is None else 0.9 * driver - 3 * GIB - weights_bytes


def _budget(result: SizingResult) -> float | None:
    if result.total_memory_bytes is None or result.resolved is None:
        return None
    return result.total_memory_bytes * result.resolved.gpu_memory_utilization


NAIVE: dict[str, Formula] = {
    "weights_plus_10_percent": weights_plus_10_percent,
    "weights_plus_3_gib": weights_plus_3_gib,
    "box_gb_as_gib": box_gb_as_gib,
    "planning_rule": planning_rule,
}


def naive_score(start: Start, formula: Formula) -> Score:
    """Score a formula as if it were the prediction, with the logged weights where there are any."""
    request = start.asked(logged_weights=True)
    result = size(request)
    weights = request.measured.weights_bytes or result.weights_bytes_per_rank
    available = None if weights is None else formula(result, weights)
    row = score(start, logged_weights=True)
    if available is None:
        return replace(
            row,
            available_gib=None,
            available_low_gib=None,
            available_high_gib=None,
            tokens=None,
            concurrency=None,
        )
    given = replace(request.measured, available_kv_cache_memory_bytes=max(0, int(available)))
    cache = size(replace(request, measured=given)).cache
    return replace(
        row,
        available_gib=available / GIB,
        available_low_gib=None,
        available_high_gib=None,
        tokens=0 if cache is None else cache.kv_cache_size_tokens,
        concurrency=0.0 if cache is None else cache.max_concurrency,
        fails=cache is None,
        reason=None,
        widest_term=None,
    )
