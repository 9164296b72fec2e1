"""The Accuracy page as data: summaries in the order of the page, starts with names and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.catalog.accuracy import Accuracy, AccuracySummary, ScoredStart
from app.catalog.catalogue import Catalogue
from app.wizard.permalink import text_of

Outcome = Literal["inside", "above", "below", "no_range", "failed"]


@dataclass(frozen=True, slots=True)
class StartLine:
    """One start.

    `outcome`: what was printed lies `inside` the range, `above` it (more cache than promised) or
    `below`; `no_range` where one of both is missing; `failed` for a start that failed, as
    predicted or not (`start.fails`). `query` are its inputs as a link writes them.
    """

    start: ScoredStart
    model: str
    card: str
    outcome: Outcome
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AccuracyView:
    """The measured figures, and every start; `misses` are the starts outside their range."""

    table: Accuracy
    cards: Mapping[str, AccuracySummary]
    lines: tuple[StartLine, ...]
    misses: tuple[StartLine, ...]
    unusable: tuple[tuple[str, int], ...]


def accuracy_view(table: Accuracy, catalogue: Catalogue) -> AccuracyView:
    """Arrange the measured table for the page."""
    lines = tuple(_line(start, catalogue) for start in table.starts)
    counted = Counter(each.code for each in table.unusable)
    return AccuracyView(
        table=table,
        cards={_card(catalogue, slug): each for slug, each in table.by_card.items()},
        lines=lines,
        misses=tuple(each for each in lines if each.outcome in {"above", "below"}),
        unusable=tuple(counted.most_common()),
    )


def _line(start: ScoredStart, catalogue: Catalogue) -> StartLine:
    slug = str(start.inputs.get("model", ""))
    model = catalogue.models.get(slug)
    return StartLine(
        start=start,
        model=model.name if model else slug,
        card=_card(catalogue, str(start.inputs.get("gpu", ""))),
        outcome=_outcome(start),
        query={name: _text(value) for name, value in start.inputs.items()},
    )


def _card(catalogue: Catalogue, slug: str) -> str:
    """Return the card's name; "" for a log that names none."""
    card = catalogue.gpus.get(slug)
    return card.name.removeprefix("NVIDIA ") if card else ""


def _outcome(start: ScoredStart) -> Outcome:
    if start.failed:
        return "failed"
    if start.covered is None or start.available_error_gib is None:
        return "no_range"
    if start.covered:
        return "inside"
    return "above" if start.available_error_gib < 0 else "below"


def _text(value: Any) -> str:  # noqa: ANN401 - an answer of any kind
    return value if isinstance(value, str) else text_of(value)
