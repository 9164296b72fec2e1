"""Several instances on one card: do their budgets lie beside each other?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.memory_bar import BESIDE_THE_BUDGET
from app.core.result import SizingResult


@dataclass(frozen=True, slots=True)
class Instance:
    """What one process needs of its only card, bytes.

    `held_bytes` once it runs: its budget, or weights, activations and a given cache.
    `asked_bytes` that must be free when it starts: `gpu_memory_utilization` of the card, however
    small a given cache is. Both with `context_bytes`, which the driver holds for the process.
    """

    held_bytes: int
    asked_bytes: int
    context_bytes: int


@dataclass(frozen=True, slots=True)
class SharedCard:
    """Bytes of one card: what its instances need together at the tightest moment, and what it has.

    `start_order` are their places in the order that needs least: who asks for much more than it
    keeps starts first. What other processes hold counts once.
    """

    taken_bytes: int
    total_bytes: int
    start_order: tuple[int, ...]

    @property
    def fits(self) -> bool:
        """Whether each instance finds its memory free when it starts."""
        return self.taken_bytes <= self.total_bytes


def instance_of(result: SizingResult) -> Instance | None:
    """Return what a copy on one card needs; None for a group of cards or unknown memory."""
    layout, total = result.request.layout, result.total_memory_bytes
    coefficients = result.request.release.memory
    alone = layout.cards == layout.replicas
    if not alone or coefficients is None or total is None or result.resolved is None:
        return None
    context = int(coefficients.context_bytes.high)
    held = sum(term.likely for term in result.memory if term.code not in BESIDE_THE_BUDGET)
    asked = math.ceil(total * result.resolved.gpu_memory_utilization)
    return Instance(held + context, max(held, asked) + context, context)


def shared_card(results: Sequence[SizingResult]) -> SharedCard | None:
    """Put one copy of each sizing on one card; None where they are not that, or memory is unknown.

    Source: vllm/v1/worker/utils.py request_memory: at start the budget must be free.
    """
    found = [instance_of(result) for result in results]
    instances = [each for each in found if each is not None]
    if len(instances) < len(results) or len({each.request.gpu.slug for each in results}) > 1:
        return None
    order = sorted(
        range(len(instances)),
        key=lambda place: instances[place].held_bytes - instances[place].asked_bytes,
    )
    held = max(result.request.other_processes_bytes for result in results)
    taken = held
    for place in order:
        taken = max(taken, held + instances[place].asked_bytes)
        held += instances[place].held_bytes
    total = min(result.total_memory_bytes or 0 for result in results)
    return SharedCard(max(taken, held), total, tuple(order))
