"""Starts that fail for want of memory, in the order in which vLLM would notice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app.core.budget import free_at_start
from app.core.coefficients import Bounds
from app.core.engine import ResolvedEngineArgs
from app.core.memory import StageMemory, Start
from app.core.model_spec import ModelSpec, StateSpec
from app.core.reasons import ReasonCode
from app.core.refusals import gib, refuse
from app.core.request import SizingRequest
from app.core.result import Cache


def check_free_memory(start: Start, total: Bounds) -> None:
    """Refuse a budget that is not free when the engine starts.

    Source: vllm/v1/worker/utils.py request_memory.
    """
    free = free_at_start(start.request, start.coefficients, total)
    if start.requested.likely > free.likely:
        raise refuse(
            start.request.release,
            "free_memory_below_request",
            free_gib=gib(int(free.likely)),
            total_gib=gib(int(total.likely)),
            requested_gib=gib(int(start.requested.likely)),
            gpu_memory_utilization=start.resolved.gpu_memory_utilization,
            other_processes_gib=gib(start.request.other_processes_bytes),
        )


def check_weights(start: Start, total: Bounds, stages: Sequence[StageMemory]) -> None:
    """Refuse weights that are larger than what is free on a card: CUDA runs out while loading."""
    free = free_at_start(start.request, start.coefficients, total)
    weights = max(stage.weights.likely for stage in stages)
    if weights > free.likely:
        raise refuse(
            start.request.release,
            "weights_do_not_fit",
            weights_bytes=int(weights),
            free_bytes=int(free.likely),
            total_gib=gib(int(total.likely)),
            missing_bytes=int(weights - free.likely),
        )


def check_left_for_cache(start: Start, stages: Sequence[StageMemory]) -> None:
    """Refuse a budget of which weights and profile run leave nothing.

    Source: vllm/v1/core/kv_cache_utils.py check_enough_kv_cache_memory.
    """
    tightest = min(stages, key=lambda stage: stage.available.likely)
    available = int(tightest.available.likely)
    if available <= 0:
        raise refuse(
            start.request.release,
            "no_memory_for_kv_cache",
            available_bytes=available,
            requested_bytes=int(tightest.requested.likely),
            weights_bytes=int(tightest.weights.likely),
            missing_bytes=-available,
        )


def check_given_cache(
    start: Start, total: Bounds, stages: Sequence[StageMemory], cache_bytes: int
) -> None:
    """Refuse a given `kv_cache_memory_bytes` that does not lie beside the weights.

    vLLM does not check it: CUDA runs out when the cache is allocated. Only what is sure counts,
    so the other terms enter with their cautious end for a refusal, the low one.
    """
    free = free_at_start(start.request, start.coefficients, total)
    needed = max(sum(term.low for _, term in stage.terms()) for stage in stages)
    left = free.high - needed
    if cache_bytes > left:
        raise refuse(
            start.request.release,
            "no_memory_for_kv_cache",
            "weights_do_not_fit",
            kv_cache_memory_bytes=cache_bytes,
            available_bytes=max(0, int(left)),
            missing_bytes=int(cache_bytes - left),
        )


def check_graphs(start: Start, total: Bounds) -> None:
    """Refuse where graphs, captured after the cache was sized, have no room left.

    Up to 0.19 the graphs are not part of the budget: they live in what utilization leaves over.
    """
    release, resolved = start.request.release, start.resolved
    if release.cudagraph_estimate_subtracted or resolved.enforce_eager:
        return
    free = free_at_start(start.request, start.coefficients, total)
    graphs = start.captured_graphs()
    left = free.likely - start.requested.likely
    if graphs.likely > left:
        raise refuse(
            release,
            "refused_by_vllm",
            "weights_do_not_fit",
            cudagraph_bytes=int(graphs.likely),
            left_bytes=int(left),
            missing_bytes=int(graphs.likely - left),
        )


def check_state_slots(request: SizingRequest, resolved: ResolvedEngineArgs, cache: Cache) -> None:
    """Refuse more sequences than there are blocks for recurrent states: graphs need one each.

    Only releases that raise have a text for it; before, the graphs were cut down.
    Source: vllm/config/compilation.py resolve_cudagraph_mode_and_sizes.
    """
    code: ReasonCode = "mamba_blocks_below_max_num_seqs"
    if resolved.enforce_eager or not keeps_states(request.model):
        return
    if request.release.error(code) and resolved.max_num_seqs > cache.num_gpu_blocks:
        raise refuse(
            request.release,
            code,
            max_num_seqs=resolved.max_num_seqs,
            num_gpu_blocks=cache.num_gpu_blocks,
        )


@lru_cache(maxsize=1024)
def keeps_states(model: ModelSpec) -> bool:
    """Whether any layer keeps a recurrent state."""
    return any(isinstance(layer.cache, StateSpec) for layer in model.layers)


def check_start(start: Start, total: Bounds, stages: Sequence[StageMemory]) -> None:
    """Raise the Refusal of the first thing that goes wrong before the cache is laid out."""
    check_free_memory(start, total)
    check_weights(start, total, stages)
    given = start.resolved.kv_cache_memory_bytes
    if given is not None:
        check_given_cache(start, total, stages, given)
        return
    check_left_for_cache(start, stages)
    check_graphs(start, total)
