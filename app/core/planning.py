"""The vendor's planning rule: deliberately cautious, the same for every release."""

from __future__ import annotations

from dataclasses import replace

from app.core.engine import ResolvedEngineArgs
from app.core.kv_cache import CacheShape
from app.core.request import SizingRequest
from app.core.result import Planning
from app.core.units import GIB
from app.core.weights import checkpoint_bytes, weights_bytes_per_rank

PLANNING_UTILIZATION = 0.9
PLANNING_RESERVE_BYTES = 3 * GIB


def planning_memory_bytes(request: SizingRequest) -> int | None:
    """Memory of one card as the rule counts it, bytes: the driver's figure, else what vLLM sees."""
    gpu = request.gpu
    return gpu.driver_memory_bytes or gpu.total_memory_bytes or request.gpu_total_memory_bytes


def left_for_cache_bytes(request: SizingRequest, copy_weights_bytes: int) -> int | None:
    """What the rule leaves one copy for its cache, bytes; negative where weights are too large.

    None where the card's memory is unknown.
    """
    card_bytes = planning_memory_bytes(request)
    if card_bytes is None:
        return None
    utilization = request.engine_args.gpu_memory_utilization or PLANNING_UTILIZATION
    per_card = card_bytes * utilization - PLANNING_RESERVE_BYTES
    return int(request.layout.cards_per_engine * per_card) - copy_weights_bytes


def planning(
    request: SizingRequest, shape: CacheShape, max_model_len: int, copy_weights_bytes: int
) -> Planning | None:
    """Apply the rule to all copies; None where the card's memory is unknown.

    Pool = cards of a copy x (0.9 x driver memory - 3 GiB) - weights of the copy (bytes of the
    checkpoint); a given gpu_memory_utilization replaces the 0.9. A block costs its bytes on every
    card of the copy. Requests are rounded down for each copy. Never negative.
    Source: the vendor's planning rule.
    """
    left_bytes = left_for_cache_bytes(request, copy_weights_bytes)
    if left_bytes is None:
        return None
    layout = request.layout
    pool_bytes = max(0, left_bytes)
    block_bytes = layout.tensor_parallel_size * sum(shape.bytes_per_block_by_stage)
    blocks = pool_bytes // block_bytes
    concurrency = blocks / shape.blocks_per_request
    copies = layout.engines
    return Planning(
        pool_bytes=pool_bytes * copies,
        kv_cache_size_tokens=int(concurrency * max_model_len) * copies,
        max_concurrency=concurrency * copies,
        requests=int(concurrency) * copies,
    )


def copy_weights_bytes(request: SizingRequest, resolved: ResolvedEngineArgs) -> int:
    """Weights that one copy has to hold: the checkpoint, bytes.

    Where expert parallelism spreads the experts over the data-parallel engines, a copy holds only
    its share of them.
    """
    whole = checkpoint_bytes(request.model, request.checkpoint)
    layout = request.layout
    if not request.model.num_experts or not layout.enable_expert_parallel:
        return whole
    if layout.data_parallel_size == 1:
        return whole
    alone = replace(request, layout=replace(layout, data_parallel_size=1))
    elsewhere = sum(weights_bytes_per_rank(alone, resolved)) - sum(
        weights_bytes_per_rank(request, resolved)
    )
    return whole - layout.tensor_parallel_size * elsewhere
