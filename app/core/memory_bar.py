"""One card's memory as terms that fill it."""

from __future__ import annotations

from app.core.coefficients import Bounds
from app.core.memory import StageMemory
from app.core.result import MemoryTerm

SOURCES = {
    "weights": "vllm/model_executor/model_loader: Model loading took",
    "peak_activation": "vllm/v1/worker/gpu_worker.py: peak of the profile run",
    "persistent_buffers": "vllm/v1/worker: buffers that stay allocated",
    "non_torch": "vllm/utils/mem_utils.py: memory outside PyTorch",
    "cudagraph_estimate": "vllm/v1/worker: estimate of the CUDA graphs",
    "kv_cache": "vllm/v1/worker/gpu_worker.py: Available KV cache memory",
    "outside_utilization": "gpu_memory_utilization: left to CUDA, NCCL and others",
}


def memory_bar(
    stage: StageMemory, total: Bounds, given_cache_bytes: int | None
) -> tuple[MemoryTerm, ...]:
    """Fill one card: what leaves the budget, the cache, and what lies outside the budget.

    The `likely` values sum to the card's total, bytes. Where more is needed than the card has,
    cache and outside are 0 and the sum shows by how much it is too much. A given cache ignores the
    budget, so all the rest of the card lies outside.
    """
    taken = [_term(code, bounds) for code, bounds in stage.terms()]
    if given_cache_bytes is None:
        available = stage.available
        budget = int(stage.requested.likely) - sum(term.likely for term in taken)
        cache = MemoryTerm(
            "kv_cache",
            max(0, int(available.low)),
            max(0, budget),
            max(0, int(available.high)),
            SOURCES["kv_cache"],
        )
    else:
        cache = _term("kv_cache", Bounds(*(given_cache_bytes,) * 3))
    rest = max(0, int(total.likely) - cache.likely - sum(term.likely for term in taken))
    return (*taken, cache, _term("outside_utilization", Bounds(rest, rest, rest)))


def _term(code: str, bounds: Bounds) -> MemoryTerm:
    return MemoryTerm(code, int(bounds.low), int(bounds.likely), int(bounds.high), SOURCES[code])
