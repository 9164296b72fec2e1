"""One model on many cards in many layouts, and many models on one server."""

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

SERVER_SIZES: Final = (1, 2, 4, 8)
WHOLE_SERVER: Final = 8
PIPELINE_STAGES: Final = 2
SMALLEST_PIPELINE: Final = 4


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
    """Return the layouts worth comparing for a model on servers of 1, 2, 4 and 8 cards."""
    return tuple(layout for cards in SERVER_SIZES for layout in layouts_of_server(model, cards))


def layouts_of_server(model: ModelSpec, cards: int) -> tuple[Layout, ...]:
    """Return the layouts worth comparing for a model that use all cards of a server.

    Copies of one card; tensor-parallel groups, as many as fit; two pipeline stages; for experts,
    data-parallel attention with the experts spread; where tensor parallelism would store the same
    heads or the same latent cache on several cards, decode context parallelism over those.
    """
    layouts = [Layout(replicas=cards)]
    layouts += [
        Layout(tensor_parallel_size=width, replicas=cards // width)
        for width in SERVER_SIZES[1:]
        if width <= cards and cards % width == 0
    ]
    if cards >= SMALLEST_PIPELINE and cards % PIPELINE_STAGES == 0:
        width = cards // PIPELINE_STAGES
        layouts.append(Layout(tensor_parallel_size=width, pipeline_parallel_size=PIPELINE_STAGES))
    if model.num_experts and cards == WHOLE_SERVER:
        layouts.append(Layout(data_parallel_size=cards, enable_expert_parallel=True))
    repeated = repeats_of_cache(model, cards)
    if repeated > 1:
        layouts.append(Layout(tensor_parallel_size=cards, decode_context_parallel_size=repeated))
    return tuple(layouts)


def repeats_of_cache(model: ModelSpec, tensor_parallel_size: int) -> int:
    """How many cards of a tensor-parallel group store the same cache: 1 where none does."""
    if is_latent(model):
        return tensor_parallel_size
    heads = model.num_key_value_heads
    return max(1, tensor_parallel_size // heads) if heads else 1


def is_latent(model: ModelSpec) -> bool:
    """Whether any layer keeps a latent cache (MLA), which tensor parallelism cannot divide."""
    return any(isinstance(layer.cache, MlaSpec) for layer in model.layers)
