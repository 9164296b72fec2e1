"""Cards by how they hold weights: those of one kind hold every tensor alike."""

from __future__ import annotations

from typing import Literal

CardKind = Literal["before_ada", "hopper", "sm100", "other"]
FP8_CAPABILITY = (8, 9)
_KINDS: dict[int, CardKind] = {9: "hopper", 10: "sm100"}


def card_kind(compute_capability: tuple[int, int] | None) -> CardKind:
    """Kind of a card; one that is unknown or not NVIDIA's is none of the special ones."""
    if compute_capability is None:
        return "other"
    if compute_capability < FP8_CAPABILITY:
        return "before_ada"
    return _KINDS.get(compute_capability[0], "other")
