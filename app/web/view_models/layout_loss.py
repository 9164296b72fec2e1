"""Why a layout of a server holds fewer requests than another one on the same cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.core.planning import copy_weights_bytes
from app.core.result import SizingResult
from app.web.view_models.layout_table import LayoutLine
from app.wizard.layout_losses import LossCode, losses_of
from app.wizard.layouts import LayoutRow
from app.wizard.matrix import MatrixRow


@dataclass(frozen=True, slots=True)
class CardShare:
    """What the planning rule gives the weights and leaves for the cache of one card, bytes."""

    weights_bytes: int
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class LayoutLoss:
    """`line` holds fewer requests than `better`, with the cause and what it counts.

    `others` do not have the cause either. The shares are those of a card of `line` and `better`;
    None where the card's memory is unknown.
    """

    line: LayoutLine
    better: LayoutLine
    others: tuple[LayoutLine, ...]
    code: LossCode
    count: int
    share: CardShare | None
    better_share: CardShare | None


def layout_losses(rows: Sequence[LayoutRow], lines: Sequence[LayoutLine]) -> tuple[LayoutLoss, ...]:
    """Name the causes, line by line, where the promised requests differ as well."""
    return tuple(_losses(rows, lines))


def _losses(rows: Sequence[LayoutRow], lines: Sequence[LayoutLine]) -> Iterator[LayoutLoss]:
    cells = [MatrixRow(row.result.request.gpu, row.layout, row.result) for row in rows]
    places = {row.layout: place for place, row in enumerate(rows)}
    for place, losses in enumerate(losses_of(cells)):
        line = lines[place]
        better = [places[loss.better] for loss in losses]
        better = [each for each in better if 0 < line.requests < lines[each].requests]
        if better:
            first, *rest = better
            yield LayoutLoss(
                line, lines[first], tuple(lines[each] for each in rest),
                losses[0].code, losses[0].count,
                _share(rows[place].result), _share(rows[first].result),
            )  # fmt: skip


def _share(result: SizingResult) -> CardShare | None:
    if result.planning is None or result.resolved is None:
        return None
    layout = result.request.layout
    weights = copy_weights_bytes(result.request, result.resolved) // layout.cards_per_engine
    return CardShare(weights, result.planning.pool_bytes // layout.cards)
