"""What else the catalogue offers when a sizing does not fit: for `core.ways_out`."""

from __future__ import annotations

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import precisions_of
from app.core.checkpoint import Checkpoint
from app.core.gpu_spec import GpuSpec
from app.core.ways_out import Alternatives
from app.core.weights import checkpoint_bytes
from app.wizard.options import TENSOR_PARALLEL_SIZES
from app.wizard.sizing_request import Prepared


def alternatives_for(prepared: Prepared, catalogue: Catalogue) -> Alternatives:
    """Return the other checkpoints of the model, and the other cards the vendor sells."""
    return Alternatives(
        checkpoints=_other_checkpoints(prepared),
        gpus=_other_cards(prepared, catalogue),
        tensor_parallel_sizes=TENSOR_PARALLEL_SIZES,
    )


def _other_checkpoints(prepared: Prepared) -> tuple[Checkpoint, ...]:
    """Return one checkpoint of each other precision: lighter ones, then heavier ones.

    The nearest in size comes first, so that the first that fits costs the least.
    """
    if prepared.model is None or prepared.request is None:
        return ()
    model, present = prepared.request.model, prepared.request.checkpoint
    bytes_now = checkpoint_bytes(model, present)
    others = [
        (checkpoint_bytes(model, best), best)
        for precision in precisions_of(prepared.model.checkpoints)
        if precision != present.precision
        for best in (prepared.model.select(precision)[0].checkpoint,)
    ]
    others.sort(key=lambda each: (each[0] > bytes_now, abs(each[0] - bytes_now), each[1].hf_id))
    return tuple(checkpoint for _, checkpoint in others)


def _other_cards(prepared: Prepared, catalogue: Catalogue) -> tuple[GpuSpec, ...]:
    """Return the vendor's cards, the smallest first."""
    if prepared.request is None:
        return ()
    cards = (catalogue.gpus[slug].spec for slug in catalogue.vendor.cards)
    others = (each for each in cards if each.slug != prepared.request.gpu.slug)
    return tuple(sorted(others, key=lambda each: each.driver_memory_bytes or 0))
