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
    "other_processes": "vllm/v1/worker/utils.py: memory that is not free at start",
    "outside_utilization": "vllm/v1/worker/utils.py: memory that gpu_memory_utilization leaves",
}
BESIDE_THE_BUDGET = frozenset({"other_processes", "outside_utilization"})


def memory_bar(
    stage: StageMemory, total: Bounds, given_cache_bytes: int | None, other_processes_bytes: int = 0
) -> tuple[MemoryTerm, ...]:
    """Fill one card: what leaves the budget, the cache, other processes, and what is left over.

    The `likely` values sum to the card's total, bytes. Where more is needed than the card has,
    cache and outside are 0 and the sum shows by how much it is too much. A given cache ignores the
    budget, so all the rest of the card lies outside.
    """
    taken = tuple(
        MemoryTerm(code, int(term.low), int(term.likely), int(term.high), SOURCES[code])
        for code, term in stage.terms()
    )
    needed = sum(term.likely for term in taken)
    low = high = given_cache_bytes
    likely = given_cache_bytes
    if low is None or likely is None or high is None:
        low, high = max(0, int(stage.available.low)), max(0, int(stage.available.high))
        likely = max(0, int(stage.requested.likely) - needed)
    others = other_processes_bytes
    rest = max(0, int(total.likely) - likely - needed - others)
    beside = [("other_processes", others)] if others else []
    return (
        *taken,
        MemoryTerm("kv_cache", low, likely, high, SOURCES["kv_cache"]),
        *(
            MemoryTerm(code, size, size, size, SOURCES[code])
            for code, size in (*beside, ("outside_utilization", rest))
        ),
    )
