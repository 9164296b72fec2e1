"""What a start measured, as terms that take the place of estimates.

Figures that the log prints count as printed. What it prints of the whole, the memory left for the
cache, fixes the sum of the rest: terms that are not printed share it in the proportion of their
estimates, so that the sizing of the same server gives the printed cache again. Where all are
printed, what their sum misses of the cache counts with `non_torch`, the term that vLLM itself takes
from a difference. How they hold for another server is said in `app.core.carry_over`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from app.core.request import Measured, SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.readings.observation import Failure, Observed

TERMS: Final = ("weights", "peak_activation", "non_torch", "cudagraph_estimate")
_LINK_DECIMALS: Final = 4
_ROUNDING_BYTES: Final = 0.005 * GIB
# Each of four printed terms may be off by its rounding.
_SUM_ROUNDING_BYTES: Final = 4 * _ROUNDING_BYTES


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured terms of one start.

    measured  terms in bytes per card; None where neither the log nor a sum gives one
    printed   codes of the terms that the log prints and that its cache agrees with; the others
              follow from the sum
    """

    measured: Measured
    printed: frozenset[str]

    def inputs(self) -> dict[str, float | int]:
        """Return the measured terms under the names of a sizing's inputs."""
        measured = self.measured
        terms = {
            "measured_weights_gib": measured.weights_bytes,
            "measured_peak_activation_gib": measured.peak_activation_bytes,
            "measured_non_torch_gib": measured.non_torch_bytes,
            "measured_cudagraph_gib": measured.cudagraph_bytes,
        }
        named: dict[str, float | int] = {
            name: round(value / GIB, _LINK_DECIMALS)
            for name, value in terms.items()
            if value is not None
        }
        if measured.available_kv_cache_memory_bytes is not None:
            named["available_kv_cache_memory_bytes"] = measured.available_kv_cache_memory_bytes
        return named


NOTHING_MEASURED: Final = Calibration(Measured(), frozenset())


def calibrate(
    request: SizingRequest, observed: Observed, failure: Failure | None = None
) -> Calibration:
    """Return the measured terms of a start of this server."""
    result = size(replace(request, measured=Measured()))
    estimates = {term.code: term.likely for term in result.memory}
    available = available_bytes(observed, result, failure)
    if not estimates or result.resolved is None:
        return _given(observed, available)
    counts = counts_graphs(observed, result)
    known = _printed_terms(observed, counts_graphs=counts)
    printed = frozenset(known)
    if not counts:
        known["cudagraph_estimate"] = 0
    requested = _requested_bytes(observed, result)
    if available is not None and requested is not None:
        known.setdefault("weights", estimates["weights"])
        estimates["non_torch"] += estimates["persistent_buffers"]
        rest = requested - available - sum(known.values())
        shares = _shares(rest, known, estimates)
        if not shares and "non_torch" in known:
            known["non_torch"] = max(0, known["non_torch"] + rest)
            printed -= {"non_torch"} if abs(rest) > _SUM_ROUNDING_BYTES else set()
        known |= shares
    if "weights" not in printed:
        known.pop("weights", None)
    subtracts = request.release.cudagraph_estimate_subtracted
    return Calibration(
        Measured(
            weights_bytes=known.get("weights"),
            peak_activation_bytes=known.get("peak_activation"),
            non_torch_bytes=known.get("non_torch"),
            cudagraph_bytes=known.get("cudagraph_estimate") if subtracts else None,
        ),
        printed,
    )


def available_bytes(
    observed: Observed, result: SizingResult, failure: Failure | None = None
) -> int | None:
    """Memory left for the cache of the binding rank: as printed, else what its blocks take."""
    available = observed.available_kv_cache_gib
    if available is None and failure is not None:
        stated = failure.numbers.get("available_gib")
        available = stated if isinstance(stated, float) else None
    cache = result.cache
    if available is not None:
        return _in_blocks(round(available * GIB), observed, result)
    if cache is None or observed.reserved_kv_cache_gib is not None:
        return None
    if observed.num_gpu_blocks and observed.num_gpu_blocks_override is None:
        return observed.num_gpu_blocks * cache.bytes_per_block
    if observed.kv_cache_size_tokens and cache.max_model_len == observed.max_concurrency_len:
        share = observed.kv_cache_size_tokens / cache.kv_cache_size_tokens
        return round(share * cache.num_gpu_blocks) * cache.bytes_per_block
    return None


def _in_blocks(available: int, observed: Observed, result: SizingResult) -> int:
    """Printed memory to the block, where the printed tokens tell how many blocks it holds.

    GiB are printed with two decimals, tokens to the last one.
    """
    cache = result.cache
    if cache is None or not observed.kv_cache_size_tokens or not cache.kv_cache_size_tokens:
        return available
    share = observed.kv_cache_size_tokens / cache.kv_cache_size_tokens
    exact = round((round(share * cache.num_gpu_blocks) + 0.5) * cache.bytes_per_block)
    return exact if abs(exact - available) <= _ROUNDING_BYTES + cache.bytes_per_block else available


def _given(observed: Observed, available: int | None) -> Calibration:
    """Without an estimate to compare with, the memory of the cache is all that counts."""
    if available is None or available <= 0:
        return NOTHING_MEASURED
    weights = observed.weights_gib
    return Calibration(
        Measured(
            weights_bytes=None if weights is None else round(weights * GIB),
            available_kv_cache_memory_bytes=available,
        ),
        frozenset({"weights"} if weights is not None else ()),
    )


def _printed_terms(observed: Observed, *, counts_graphs: bool) -> dict[str, int]:
    non_torch = observed.non_torch_gib
    if non_torch is None and observed.consumed_gib is not None and observed.weights_gib is not None:
        non_torch = observed.consumed_gib - observed.weights_gib
    terms = {
        "weights": observed.weights_gib,
        "peak_activation": observed.peak_activation_gib,
        "non_torch": non_torch,
        "cudagraph_estimate": observed.cudagraph_estimate_gib if counts_graphs else None,
    }
    return {code: max(0, round(gib * GIB)) for code, gib in terms.items() if gib is not None}


def counts_graphs(observed: Observed, result: SizingResult) -> bool:
    """Whether graphs left the budget of this start before its cache was sized.

    VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 switches that off; the log then advises a lower
    utilization and names none that would be equal.
    """
    resolved = result.resolved
    eager = resolved is not None and resolved.enforce_eager
    switched_off = (
        observed.suggested_gpu_memory_utilization is not None
        and observed.equivalent_gpu_memory_utilization is None
    )
    subtracted = result.request.release.cudagraph_estimate_subtracted
    return subtracted and not eager and not switched_off


def _requested_bytes(observed: Observed, result: SizingResult) -> int | None:
    if result.total_memory_bytes is not None and result.resolved is not None:
        return math.ceil(result.total_memory_bytes * result.resolved.gpu_memory_utilization)
    requested = observed.requested_memory_gib
    return None if requested is None else round(requested * GIB)


def _shares(rest: int, known: Mapping[str, int], estimates: Mapping[str, int]) -> dict[str, int]:
    """Divide what is left among the terms that are not known."""
    unknown = [code for code in TERMS if code not in known]
    whole = sum(estimates[code] for code in unknown)
    if not whole:
        return {}
    return {code: max(0, round(rest * estimates[code] / whole)) for code in unknown}
