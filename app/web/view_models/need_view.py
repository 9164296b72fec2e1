"""What meets a need, as the page shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

from app.catalog.catalogue import Catalogue
from app.core.checkpoint import Checkpoint
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.reasons import Reason
from app.core.request import SizingRequest
from app.core.request_mix import RequestMix, request_mix
from app.core.sizing import size
from app.core.workload import Workload
from app.wizard.answers import Answers
from app.wizard.matrix import all_cards
from app.wizard.need import Binding, Need, Offer, checkpoints_of, engine_layouts, offers
from app.wizard.permalink import query_pairs
from app.wizard.sizing_request import Prepared, to_request

CACHED_NEEDS: Final = 128
SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class OfferLine:
    """One offer; `headroom` is promised over needed, `price` of all servers, None where unknown."""

    gpu: GpuSpec
    checkpoint: Checkpoint
    layout: Layout
    copies: int
    servers: int
    cards_each: int
    cards: int
    watts: int | None
    per_copy: int
    requests: int
    headroom: float
    binding: Binding
    price: int | None
    query: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The preemption curve in a box of 100 x 100: a polyline, and requests at the right edge."""

    points: str
    last: int


@dataclass(frozen=True, slots=True)
class NeedView:
    """Offers, best first; the mix of the one that is looked at, with its curve.

    `too_long` is why no card can help: requests longer than the model takes.
    """

    need: Need
    offers: tuple[OfferLine, ...]
    found: int
    looked_at: int
    mix: RequestMix | None
    curve: Curve | None
    currency: str | None
    too_long: Reason | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cards and precisions may be offered."""

    cards: str
    bits: tuple[int, ...]


class NeedViews:
    """Works needs out for one catalogue; those asked for lately are kept."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Start with nothing worked out."""
        self._catalogue = catalogue
        self._offers = lru_cache(maxsize=CACHED_NEEDS)(self._work_out)

    def view(self, answers: Answers, need: Need, choice: Choice, looked_at: int) -> NeedView | None:
        """Show what meets a need; None while the model cannot be sized."""
        found = self._offers(answers, need, choice)
        if found is None:
            return None
        prepared, whole = found
        shown = whole[:SHOWN]
        place = looked_at if looked_at < len(shown) else 0
        mix = None
        if shown and need.workload is not None:
            mix = request_mix(shown[place].result, need.workload)
        return NeedView(
            need=need,
            offers=tuple(self._line(prepared, offer, need) for offer in shown),
            found=len(whole),
            looked_at=place,
            mix=mix,
            curve=None if mix is None else curve_of(mix),
            currency=self._catalogue.vendor.currency,
            too_long=None if whole else _too_long(prepared),
        )

    def _work_out(
        self, answers: Answers, need: Need, choice: Choice
    ) -> tuple[Prepared, tuple[Offer, ...]] | None:
        prepared = to_request(answers, self._catalogue)
        if prepared.request is None:
            return None
        whole = [
            offer
            for card in self._cards(choice.cards)
            for offer in offers(
                _requests(prepared, card, choice.bits), need, self._server_sizes(card)
            )
        ]
        return prepared, tuple(sorted(whole, key=lambda offer: offer.order(need)))

    def _cards(self, wanted: str) -> tuple[GpuSpec, ...]:
        catalogue = self._catalogue
        if wanted in catalogue.gpus:
            return (catalogue.gpus[wanted].spec,)
        if wanted == "all":
            return all_cards(catalogue)
        return tuple(catalogue.gpus[slug].spec for slug in catalogue.vendor.cards)

    def _server_sizes(self, card: GpuSpec) -> tuple[int, ...]:
        """Cards in a server: as the vendor sells them, else 1, 2, 4 and 8."""
        servers = (self._catalogue.servers[slug] for slug in self._catalogue.vendor.servers)
        return tuple(sorted({each.cards for each in servers if each.gpu == card.slug})) or (
            1, 2, 4, 8,
        )  # fmt: skip

    def _line(self, prepared: Prepared, offer: Offer, need: Need) -> OfferLine:
        request = offer.result.request
        layout, gpu = request.layout, request.gpu
        slugs = {(each.gpu, each.cards): each.slug for each in self._catalogue.servers.values()}
        server = slugs.get((gpu.slug, offer.fleet.cards_each))
        prices = dict(self._catalogue.vendor.net_prices)
        own = prepared.answers.with_changes(
            gpu=gpu.slug,
            server=server,
            checkpoint=request.checkpoint.hf_id,
            tensor_parallel_size=layout.tensor_parallel_size,
            pipeline_parallel_size=layout.pipeline_parallel_size,
            data_parallel_size=layout.data_parallel_size,
            decode_context_parallel_size=layout.decode_context_parallel_size,
            enable_expert_parallel=layout.enable_expert_parallel,
            replicas=layout.replicas,
            peak_requests=need.requests,
            **({} if need.workload is None else {"mean_request_tokens": _mean(need.workload)}),
        )
        price = prices.get(server or "")
        return OfferLine(
            gpu=gpu,
            checkpoint=request.checkpoint,
            layout=layout,
            copies=offer.copies,
            servers=offer.fleet.servers,
            cards_each=offer.fleet.cards_each,
            cards=offer.fleet.cards,
            watts=offer.watts,
            per_copy=offer.per_copy,
            requests=offer.requests,
            headroom=offer.requests / need.requests,
            binding=offer.binding,
            price=None if price is None else price * offer.fleet.servers,
            query=urlencode(query_pairs(own) or (), safe="/:,"),
        )


def _mean(workload: Workload) -> int:
    """Return the mean length of a mix, so that the result judges the requests of the need."""
    return max(1, round(workload.mean_tokens()))


def curve_of(mix: RequestMix) -> Curve:
    """Draw the probability of preemption over the requests in flight."""
    last = mix.curve[-1][0]
    points = " ".join(f"{100 * n / last:.2f},{100 - 100 * chance:.2f}" for n, chance in mix.curve)
    return Curve(f"0,100 {points}", last)


def _requests(prepared: Prepared, card: GpuSpec, bits: tuple[int, ...]) -> Iterator[SizingRequest]:
    assert prepared.request is not None  # noqa: S101 - checked by the caller
    for checkpoint in checkpoints_of(prepared.model, prepared.request.checkpoint, bits):
        on_card = replace(
            prepared.request, gpu=card, gpu_total_memory_bytes=None, checkpoint=checkpoint
        )
        for layout in engine_layouts(prepared.request.model):
            yield replace(on_card, layout=layout)


def _too_long(prepared: Prepared) -> Reason | None:
    reason = None if prepared.request is None else size(prepared.request).reason
    return reason if reason is not None and reason.code == "context_too_long" else None
