"""Several sizings on one server: which cards each takes, and which it shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.result import SizingResult
from app.core.shared_card import SharedCard, instance_of, shared_card

Card = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where sizings lie: for each card, the places of the sizings that have a copy or a part on it.

    `shared` holds what the instances of a card need together, by the card's number from 0.
    """

    cards: tuple[Card, ...]
    shared: tuple[tuple[int, SharedCard], ...]

    def cards_of(self, place: int) -> tuple[int, ...]:
        """Return the numbers of the cards that a sizing lies on."""
        return tuple(number for number, each in enumerate(self.cards) if place in each)


def place(results: Sequence[SizingResult], most: int) -> Placement:
    """Give each sizing cards of its own; where `most` cards are too few, let instances share.

    Only copies on one card share one, and no two copies of one sizing: they would be one with more
    cache. The placement may have more cards than `most`: then it does not fit. All sizings must be
    for the same kind of card.
    """
    apart = [(at,) for at, result in enumerate(results) for _ in range(result.request.layout.cards)]
    if len(apart) <= most or any(each.request.layout.cards > most for each in results):
        return Placement(tuple(apart), ())
    alone = {at for at, result in enumerate(results) if instance_of(result) is None}
    packed: list[Card] = [card for card in apart if card[0] in alone]
    singles = [card[0] for card in apart if card[0] not in alone]
    fits = _fitting(results)
    for at in sorted(singles, key=lambda each: -_held(results[each])):
        with_room = (
            number
            for number, card in enumerate(packed)
            if not alone.intersection(card) and fits((*card, at))
        )
        number = next(with_room, None)
        if number is None:
            packed.append((at,))
        else:
            packed[number] = (*packed[number], at)
    return Placement(tuple(packed), tuple(_shared(packed, results)))


def _held(result: SizingResult) -> int:
    instance = instance_of(result)
    return 0 if instance is None else instance.held_bytes


def _fitting(results: Sequence[SizingResult]) -> Callable[[Card], bool]:
    """Tell whether instances fit on one card; each combination is worked out once."""
    known: dict[Card, bool] = {}

    def fits(card: Card) -> bool:
        if len(set(card)) < len(card):
            return False
        if card not in known:
            together = shared_card([results[at] for at in card])
            known[card] = together is not None and together.fits
        return known[card]

    return fits


def _shared(cards: Sequence[Card], results: Sequence[SizingResult]) -> list[tuple[int, SharedCard]]:
    found = []
    for number, card in enumerate(cards):
        together = shared_card([results[at] for at in card]) if len(card) > 1 else None
        if together is not None:
            found.append((number, together))
    return found
