"""The layouts of a server side by side, each a link to its own result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.layout import Layout
from app.core.reasons import Reason
from app.web.view_models.verdict import State, verdict_of
from app.wizard.answers import Answers
from app.wizard.layouts import LayoutRow

Href = Callable[[Answers], str]
COMPARED: Final = 4


@dataclass(frozen=True, slots=True)
class LayoutLine:
    """One layout.

    `low` and `high` are the log's figures over all copies, `share` is that of the best, 0 to 100.
    `cache_dtype` is set where the layout runs only with that cache, which nobody asked for.
    """

    layout: Layout
    href: str
    is_chosen: bool
    planned: int | None
    low: float | None
    high: float | None
    requests: int
    share: float
    state: State
    reason: Reason | None
    cache_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class IdleCards:
    """A server of which a layout uses only some cards, and what all of them would give."""

    used: int
    cards: int
    best: LayoutLine


def idle_cards(lines: Sequence[LayoutLine], server_cards: int) -> IdleCards | None:
    """Return the best layout of all cards where the chosen one leaves some of them idle.

    None where it leaves none, or where nothing fits on all of them either.
    """
    used = next((line.layout.cards for line in lines if line.is_chosen), server_cards)
    whole = [
        line
        for line in lines
        if line.layout.cards == server_cards and line.requests and line.cache_dtype is None
    ]
    if used >= server_cards or not whole:
        return None
    return IdleCards(used, server_cards, max(whole, key=lambda line: line.requests))


def side_by_side(lines: Sequence[LayoutLine]) -> tuple[tuple[str, str], ...]:
    """Return the layouts that hold most, as the cases of a comparison; none for fewer than two."""
    fitting = sorted((line for line in lines if line.requests), key=lambda line: -line.requests)
    if len(fitting) < 2:  # noqa: PLR2004 - a comparison has two sides
        return ()
    return tuple(("case", line.href.removeprefix("?")) for line in fitting[:COMPARED])


def layout_lines(
    rows: Sequence[LayoutRow], peak_requests: int | None, href: Href
) -> tuple[LayoutLine, ...]:
    """Make one line for each layout, in the order given."""
    best = max((row.result.verdict_requests for row in rows), default=0) or 1
    asked = next((row.answers.kv_cache_dtype for row in rows if row.chosen), "auto")
    return tuple(_line(row, best, asked, peak_requests, href) for row in rows)


def _line(
    row: LayoutRow, best: int, asked_dtype: str, peak_requests: int | None, href: Href
) -> LayoutLine:
    result, engines, dtype = row.result, row.layout.engines, row.answers.kv_cache_dtype
    low = high = None
    if result.concurrency_range is not None:
        low, high = result.concurrency_range.low, result.concurrency_range.high
    elif result.cache is not None:
        low = high = result.cache.max_concurrency
    return LayoutLine(
        layout=row.layout,
        href=href(row.answers),
        is_chosen=row.chosen,
        planned=result.planning.requests if result.planning else None,
        low=None if low is None else low * engines,
        high=None if high is None else high * engines,
        requests=result.verdict_requests,
        share=round(100 * result.verdict_requests / best, 2),
        state=verdict_of(result, peak_requests).state,
        reason=result.reason,
        cache_dtype=None if dtype == asked_dtype else dtype,
    )
