"""Several instances on one card: do their budgets lie beside each other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.memory_bar import BESIDE_THE_BUDGET
from app.core.result import SizingResult


@dataclass(frozen=True, slots=True)
class SharedCard:
    """Bytes of one card: what all instances take together, and what the card has.

    Each instance takes its budget (`gpu_memory_utilization` of the card, or weights, activations
    and a given cache) and beside it the context that the driver holds for its process. What other
    processes hold counts once, however many instances name it.
    """

    taken_bytes: int
    total_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the last instance finds its memory free when it starts."""
        return self.taken_bytes <= self.total_bytes


def shared_card(results: Sequence[SizingResult]) -> SharedCard | None:
    """Add up the instances of one card; None where they are not that, or memory is unknown.

    Every instance has one card of the same kind to itself. Source: vllm/v1/worker/utils.py
    request_memory: at start the budget must be free.
    """
    first = results[0]
    taken = 0
    for result in results:
        request = result.request
        coefficients = request.release.memory
        if (
            request.layout.cards != 1
            or request.gpu.slug != first.request.gpu.slug
            or coefficients is None
            or result.total_memory_bytes is None
            or not result.memory
        ):
            return None
        budget = sum(term.likely for term in result.memory if term.code not in BESIDE_THE_BUDGET)
        taken += budget + int(coefficients.context_bytes.high)
    taken += max(result.request.other_processes_bytes for result in results)
    return SharedCard(taken, first.total_memory_bytes or 0)
