"""What vLLM sees of a card, what it asks for, and what is free before the weights load."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.core.coefficients import Bounds, MemoryCoefficients, exactly
from app.core.request import SizingRequest


@dataclass(frozen=True, slots=True)
class CardMemory:
    """What vLLM sees of a card (bytes), and whether that was derived from the driver's figure."""

    total: Bounds
    from_driver: bool = False


def card_memory(request: SizingRequest, coefficients: MemoryCoefficients) -> CardMemory | None:
    """Memory that cudaMemGetInfo reports; None where neither it nor the driver's figure is known.

    Given beats known beats derived from the driver's figure (which is larger).
    """
    known = request.gpu_total_memory_bytes or request.gpu.total_memory_bytes
    if known is not None:
        return CardMemory(exactly(known))
    driver = request.gpu.driver_memory_bytes
    if driver is None:
        return None
    hidden = coefficients.driver_only_bytes
    total = Bounds(driver - hidden.high, driver - hidden.likely, driver - hidden.low)
    return CardMemory(total, from_driver=True)


def requested_memory(total: Bounds, gpu_memory_utilization: float) -> Bounds:
    """Budget of the engine on one card. Source: vllm/v1/worker/utils.py request_memory."""
    return Bounds(
        math.ceil(total.low * gpu_memory_utilization),
        math.ceil(total.likely * gpu_memory_utilization),
        math.ceil(total.high * gpu_memory_utilization),
    )


def free_at_start(
    request: SizingRequest, coefficients: MemoryCoefficients, total: Bounds
) -> Bounds:
    """Memory free before the weights load, bytes.

    Context and NCCL lie outside the budget, and so does what other processes hold: from 0.9.2 on
    vLLM counts the growth since this snapshot. Source: vllm/utils/mem_utils.py memory_profiling.
    """
    alone = request.layout.cards_per_engine == 1
    own = coefficients.context_bytes if alone else coefficients.context_group_bytes
    held = own.plus(request.other_processes_bytes)
    return Bounds(
        max(0.0, total.low - held.high),
        max(0.0, total.likely - held.likely),
        max(0.0, total.high - held.low),
    )
