"""Several sizings on one chosen server: which cards each takes, whether all fit, what to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.catalog.catalogue import Catalogue
from app.catalog.servers import Server
from app.core.one_server import Placement, place
from app.core.result import SizingResult
from app.wizard.answers import Answers
from app.wizard.one_server import (
    Shares,
    larger_server,
    server_for,
    servers_with,
    smaller_shares,
)
from app.wizard.sizing_request import Prepared

Href = Callable[[Sequence[Answers], Server], str]


@dataclass(frozen=True, slots=True)
class Placed:
    """One sizing on the server; `numbers` are its cards, counted from 1."""

    name: str
    cards: int
    numbers: tuple[int, ...]
    result: SizingResult


@dataclass(frozen=True, slots=True)
class Shared:
    """One card with several instances: sizings by number from 1, and bytes taken and there.

    `order` is set where a fixed cache makes it matter who starts first.
    """

    card: int
    sizings: tuple[int, ...]
    taken_bytes: int
    total_bytes: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OneServer:
    """The section: the server, who lies where, and links to what fits instead.

    `strangers` are the numbers of sizings for another card than the server's, `failing` of those
    that do not start; `cards` is what all take.
    """

    server: Server
    choices: tuple[Server, ...]
    cards: int
    placed: tuple[Placed, ...]
    shared: tuple[Shared, ...]
    strangers: tuple[int, ...]
    failing: tuple[int, ...]
    shares: Shares | None
    shares_href: str
    larger: Server | None
    larger_href: str
    same_card_href: str

    @property
    def fits(self) -> bool:
        """Whether every sizing starts beside the others."""
        return not self.strangers and not self.failing and self.cards <= self.server.cards


def on_one_server(
    prepared: Sequence[Prepared],
    results: Sequence[SizingResult],
    names: Sequence[str],
    chosen: Server | None,
    catalogue: Catalogue,
    href: Href,
) -> OneServer | None:
    """Place sizings on the chosen server, else on the one they mean; None where there is none."""
    server = chosen or server_for(results, [each.server for each in prepared], catalogue)
    if server is None:
        return None
    answers = [each.answers for each in prepared]
    strangers = tuple(
        number for number, each in enumerate(results, 1) if each.request.gpu.slug != server.gpu
    )
    placement = place(results, server.cards)
    too_many = not strangers and len(placement.cards) > server.cards
    shares = smaller_shares(prepared, results, server.cards) if too_many else None
    roomy = larger_server(server, sum(each.request.layout.cards for each in results), catalogue)
    larger = roomy if too_many else None
    moved = [
        each.with_changes(gpu=server.gpu, gpu_total_memory_bytes=None, server=None)
        for each in answers
    ]
    return OneServer(
        server=server,
        choices=_choices(server, results, catalogue),
        cards=len(placement.cards),
        placed=tuple(_placed(at, names[at], results[at], placement) for at in range(len(results))),
        shared=_shared(placement, results),
        strangers=strangers,
        failing=tuple(number for number, each in enumerate(results, 1) if not each.ok),
        shares=shares,
        shares_href="" if shares is None else href(shares.answers, server),
        larger=larger,
        larger_href="" if larger is None else href(answers, larger),
        same_card_href=href(moved, roomy or server) if strangers else "",
    )


def _choices(
    server: Server, results: Sequence[SizingResult], catalogue: Catalogue
) -> tuple[Server, ...]:
    """Return the servers of the cards in question first, then every other listed one."""
    gpus = dict.fromkeys([server.gpu, *(each.request.gpu.slug for each in results)])
    wanted = [each for gpu in gpus for each in servers_with(gpu, catalogue)]
    listed = sorted(catalogue.servers.values(), key=lambda each: (each.gpu, each.cards))
    return (*wanted, *(each for each in listed if each.gpu not in gpus))


def _placed(at: int, name: str, result: SizingResult, placement: Placement) -> Placed:
    numbers = tuple(number + 1 for number in placement.cards_of(at))
    return Placed(name, len(numbers), numbers, result)


def _shared(placement: Placement, results: Sequence[SizingResult]) -> tuple[Shared, ...]:
    found = []
    for number, card in placement.shared:
        sizings = placement.cards[number]
        fixed = any(results[at].request.given_cache_bytes is not None for at in sizings)
        order = tuple(sizings[at] + 1 for at in card.start_order) if fixed else ()
        numbers = tuple(sorted(at + 1 for at in sizings))
        found.append(Shared(number + 1, numbers, card.taken_bytes, card.total_bytes, order))
    return tuple(found)
