"""From a need to a server: the layouts that meet it, the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal

from app.catalog.models import CatalogueModel
from app.core.checkpoint import Checkpoint
from app.core.layout import Layout
from app.core.model_spec import ModelSpec
from app.core.request import SizingRequest
from app.core.request_mix import promised_requests
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import ceil_div
from app.core.workload import Workload
from app.wizard.matrix import SERVER_SIZES, layouts_of_server

MAX_CARDS: Final = 64
# Precisions by the bits of most of their weights, the usual one first.
PRECISIONS_OF_BITS: Final = {
    16: ("bf16",),
    8: ("fp8", "fp8-dynamic", "fp8-block", "int8-w8a8", "int8-w8a16", "mxfp8", "mixed"),
    4: ("nvfp4", "mxfp4", "awq-int4", "gptq-int4", "int4-w4a16"),
}
BITS: Final = tuple(PRECISIONS_OF_BITS)
Binding = Literal["cache", "batch", "weights"]


@dataclass(frozen=True, slots=True)
class Need:
    """What has to be served: requests in flight at the peak, and copies that may fail.

    `workload` are their lengths; None means that all may have the declared length.
    """

    requests: int
    workload: Workload | None = None
    spare_copies: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Equal servers that hold the copies: how many, with how many cards each."""

    servers: int
    cards_each: int

    @property
    def cards(self) -> int:
        """Cards of all servers."""
        return self.servers * self.cards_each


@dataclass(frozen=True, slots=True)
class Offer:
    """Copies of one layout that meet a need.

    `result` is the sizing of all copies together, `per_copy` the requests one copy may be promised,
    `requests` those of the copies that are not spare. `watts` is the power of all cards of the
    fleet, None where it is unknown. `binding` says what more requests would run into first: the
    cache, `max_num_seqs` (batch); or that the weights alone ask for this many cards.
    """

    result: SizingResult
    copies: int
    per_copy: int
    requests: int
    fleet: Fleet
    watts: int | None
    binding: Binding

    def order(self, need: Need) -> tuple[float, ...]:
        """Sort key: fewest cards, then power (unknown last), then headroom."""
        watts = float("inf") if self.watts is None else self.watts
        return (self.fleet.cards, watts, -self.requests / need.requests)


def usual_bits(main_precision: str) -> tuple[int, ...]:
    """Return the weights allowed unless somebody says otherwise: the maker's, and 8 for 16 bit."""
    for bits, precisions in PRECISIONS_OF_BITS.items():
        if main_precision in precisions and bits != BITS[0]:
            return (bits,)
    return BITS[:2]


def checkpoints_of(
    model: CatalogueModel | None, main: Checkpoint, bits: Iterable[int]
) -> tuple[Checkpoint, ...]:
    """Return one checkpoint for each allowed size of weights: the main one where it has that size.

    Without any, the main one.
    """
    found = []
    for each in bits:
        precisions = PRECISIONS_OF_BITS[each]
        if main.precision in precisions:
            found.append(main)
        elif model is not None:
            matching = (model.select(precision) for precision in precisions)
            found.extend(chosen[0].checkpoint for chosen in islice(filter(None, matching), 1))
    return tuple(found) or (main,)


def engine_layouts(model: ModelSpec) -> tuple[Layout, ...]:
    """Return the ways one copy of a model can lie on 1, 2, 4 or 8 cards."""
    return tuple(
        layout
        for cards in SERVER_SIZES
        for layout in layouts_of_server(model, cards)
        if layout.replicas == 1
    )


def offers(
    requests: Iterable[SizingRequest], need: Need, server_sizes: Sequence[int] = SERVER_SIZES
) -> tuple[Offer, ...]:
    """Return what meets a need, best first, of sizings of one copy each.

    Each copy lies in one server; servers of one offer are equal. Layouts that no server can hold,
    that vLLM refuses, or that would take more than 64 cards are left out.
    """
    promised = [(size(request), request) for request in requests]
    counted = [(request, promised_requests(result, need.workload)) for result, request in promised]
    found = [
        offer
        for request, per_copy in counted
        for offer in _offer(request, per_copy, need, server_sizes, counted)
    ]
    return tuple(sorted(found, key=lambda offer: offer.order(need)))


def fleet_of(copies: int, cards_per_copy: int, server_sizes: Sequence[int]) -> Fleet | None:
    """Return the equal servers with the fewest cards, then the fewest servers; None if none can."""
    fleets = [
        Fleet(ceil_div(copies, cards // cards_per_copy), cards)
        for cards in server_sizes
        if cards >= cards_per_copy
    ]
    return min(fleets, key=lambda fleet: (fleet.cards, fleet.servers), default=None)


def _offer(
    request: SizingRequest,
    per_copy: int,
    need: Need,
    server_sizes: Sequence[int],
    counted: Sequence[tuple[SizingRequest, int]],
) -> Iterator[Offer]:
    if not per_copy:
        return
    working = ceil_div(need.requests, per_copy)
    copies = working + need.spare_copies
    fleet = fleet_of(copies, request.layout.cards, server_sizes)
    if fleet is None or fleet.cards > MAX_CARDS:
        return
    whole = size(replace(request, layout=replace(request.layout, replicas=copies)))
    watts = request.gpu.tdp_watts
    yield Offer(
        result=whole,
        copies=copies,
        per_copy=per_copy,
        requests=working * per_copy,
        fleet=fleet,
        watts=None if watts is None else watts * fleet.cards,
        binding=_binding(whole, per_copy, working, counted),
    )


def _binding(
    whole: SizingResult, per_copy: int, working: int, counted: Sequence[tuple[SizingRequest, int]]
) -> Binding:
    request = whole.request
    layout = request.layout
    seqs = whole.resolved.max_num_seqs if whole.resolved else 0
    if per_copy >= seqs * layout.data_parallel_size:
        return "batch"
    cards = layout.cards // layout.replicas
    if working > 1 or cards == 1:
        return "cache"
    smaller = any(
        held
        for other, held in counted
        if other.gpu is request.gpu
        and other.checkpoint is request.checkpoint
        and other.layout.cards < cards
    )
    return "cache" if smaller else "weights"
