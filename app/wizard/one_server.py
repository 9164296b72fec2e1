"""What to change so that several sizings fit on one server, each change sized before it is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.catalog.catalogue import Catalogue
from app.catalog.servers import Server
from app.core.one_server import Placement, place
from app.core.result import SizingResult
from app.core.shared_card import instance_of
from app.core.sizing import size
from app.wizard.answers import Answers
from app.wizard.matrix import SERVER_SIZES
from app.wizard.sizing_request import Prepared


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the card with which all fit, as answers, and what each sizing then gives."""

    answers: tuple[Answers, ...]
    results: tuple[SizingResult, ...]
    placement: Placement


def server_for(
    results: Sequence[SizingResult], named: Sequence[Server | None], catalogue: Catalogue
) -> Server | None:
    """Choose the server that is meant: a named one, else the smallest of the card that has room.

    Of a card whose servers are all too small it is the largest; None for a card without a name.
    """
    first = next((server for server in named if server is not None), None)
    if first is not None:
        return first
    gpu = results[0].request.gpu.slug
    needed = sum(each.request.layout.cards for each in results)
    servers = servers_with(gpu, catalogue)
    roomy = (each for each in servers if each.cards >= needed)
    return next(roomy, servers[-1] if servers else None)


def servers_with(gpu: str, catalogue: Catalogue) -> list[Server]:
    """Return the servers with a card, the smallest first; usual sizes where none is listed."""
    listed = [each for each in catalogue.servers.values() if each.gpu == gpu]
    if not listed and catalogue.card(gpu) is not None:
        return [Server(f"{cards}x-{gpu}", "", gpu, cards, "none", 1, "") for cards in SERVER_SIZES]
    return sorted(listed, key=lambda each: each.cards)


def named_server(slug: str, catalogue: Catalogue) -> Server | None:
    """Find a server by its slug, a listed one or one of usual size; None for any other text."""
    gpu = slug.partition("x-")[2]
    return next((each for each in servers_with(gpu, catalogue) if each.slug == slug), None)


def larger_server(server: Server, cards: int, catalogue: Catalogue) -> Server | None:
    """Find the smallest server of the same card with that many cards; None where there is none."""
    return next((s for s in servers_with(server.gpu, catalogue) if s.cards >= cards), None)


def smaller_shares(
    prepared: Sequence[Prepared], results: Sequence[SizingResult], most: int
) -> Shares | None:
    """Find shares of the card with which all start on `most` cards and each promises a request.

    Each instance keeps what it needs beside its cache; what is then left of a card is divided
    evenly. None where that is not enough for one of them, or nothing can share a card.
    """
    utilizations = _utilizations(results, most)
    if utilizations is None:
        return None
    answers, sized = [], []
    for at, result in enumerate(results):
        share, request = utilizations.get(at), result.request
        own = prepared[at].answers
        if share is not None:
            args = request.engine_args.with_flag("gpu_memory_utilization", share)
            request = replace(request, engine_args=args)
            own = own.with_changes(gpu_memory_utilization=share)
        answers.append(own)
        sized.append(size(request))
    if not all(each.ok and each.verdict_requests for each in sized):
        return None
    placement = place(sized, most)
    if len(placement.cards) > most:
        return None
    return Shares(tuple(answers), tuple(sized), placement)


def _utilizations(results: Sequence[SizingResult], most: int) -> dict[int, float] | None:
    """Divide the cards that groups leave among the instances; None where there are too few."""
    singles = [at for at, result in enumerate(results) if instance_of(result) is not None]
    free = most - sum(
        result.request.layout.cards for at, result in enumerate(results) if at not in singles
    )
    if not singles or any(results[at].request.layout.cards > free for at in singles):
        return None
    singles.sort(key=lambda at: -_least_bytes(results[at]))
    cards: list[list[int]] = [[] for _ in range(free)]
    for at in singles:
        loads = sorted(cards, key=lambda card: sum(_least_bytes(results[each]) for each in card))
        for card in loads[: results[at].request.layout.cards]:
            card.append(at)
    shares: dict[int, float] = {}
    for card in cards:
        for at, share in _divided(card, results).items():
            shares[at] = min(share, shares.get(at, 1.0))
    return shares if min(shares.values()) > 0 else None


def _divided(card: Sequence[int], results: Sequence[SizingResult]) -> dict[int, float]:
    """Give each instance of a card what it needs and an even part of the rest, in hundredths."""
    if not card:
        return {}
    total = min(results[at].total_memory_bytes or 0 for at in card)
    others = max(results[at].request.other_processes_bytes for at in card)
    rest = total - others - sum(_least_bytes(results[at]) for at in card)
    growing = [at for at in card if results[at].request.given_cache_bytes is None]
    shares = {}
    for at in card:
        instance = instance_of(results[at])
        context = 0 if instance is None else instance.context_bytes
        budget = _least_bytes(results[at]) - context
        if at in growing:
            budget += rest // len(growing)
        resolved = results[at].resolved
        now = 1.0 if resolved is None else resolved.gpu_memory_utilization
        shares[at] = min(now, math.floor(100 * budget / total) / 100) if rest >= 0 else 0.0
    return shares


def _least_bytes(result: SizingResult) -> int:
    """Return what an instance holds of its card without a cache, or with the one it was given."""
    instance = instance_of(result)
    if instance is None:
        return 0
    cache = sum(term.likely for term in result.memory if term.code == "kv_cache")
    return instance.held_bytes - (cache if result.request.given_cache_bytes is None else 0)
