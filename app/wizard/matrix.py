"""One model on many cards in many layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.model_spec import MlaSpec, ModelSpec
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size

GROUP_SIZES: Final = (2, 4, 8)
WHOLE_SERVER: Final = 8


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One cell: a card, a layout, and what comes of it."""

    gpu: GpuSpec
    layout: Layout
    result: SizingResult


def matrix(
    request: SizingRequest, gpus: Sequence[GpuSpec], layouts: Sequence[Layout]
) -> Iterator[MatrixRow]:
    """Size a request on every card in every layout, card by card."""
    for gpu in gpus:
        on_card = replace(request, gpu=gpu, gpu_total_memory_bytes=None)
        for layout in layouts:
            yield MatrixRow(gpu, layout, size(replace(on_card, layout=layout)))


def all_cards(catalogue: Catalogue) -> tuple[GpuSpec, ...]:
    """Return every card of the catalogue: those the vendor sells first."""
    sold = catalogue.vendor.cards
    others = (slug for slug in catalogue.gpus if slug not in sold)
    return tuple(catalogue.gpus[slug].spec for slug in (*sold, *others))


def usual_layouts(model: ModelSpec) -> tuple[Layout, ...]:
    """Return the layouts worth comparing for a model, on up to eight cards.

    One card; copies and tensor-parallel groups of 2, 4 and 8; for experts, data-parallel
    attention with the experts spread; for a latent cache, which tensor parallelism would copy to
    every card, decode context parallelism.
    """
    layouts = [Layout()]
    for cards in GROUP_SIZES:
        layouts += [Layout(replicas=cards), Layout(tensor_parallel_size=cards)]
    if model.num_experts:
        layouts.append(Layout(data_parallel_size=WHOLE_SERVER, enable_expert_parallel=True))
    if _is_latent(model):
        layouts.append(
            Layout(
                tensor_parallel_size=WHOLE_SERVER,
                decode_context_parallel_size=WHOLE_SERVER,
            )
        )
    return tuple(layouts)


def _is_latent(model: ModelSpec) -> bool:
    return any(isinstance(layer.cache, MlaSpec) for layer in model.layers)
