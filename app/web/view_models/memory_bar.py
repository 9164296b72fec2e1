"""One card's memory as a stacked bar: every term with its place and width."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.sizing import SizingResult

GAP = 0.2


@dataclass(frozen=True, slots=True)
class Segment:
    """One term. `start` and `width` are shares of the bar in percent; bytes are per card."""

    code: str
    low: int
    likely: int
    high: int
    source: str
    start: float
    width: float

    @property
    def drawn_width(self) -> float:
        """Width less a hairline of background, so that neighbours stay apart."""
        return max(self.width - GAP, min(self.width, GAP))

    @property
    def is_uncertain(self) -> bool:
        """True where the term has a range."""
        return self.low != self.high


@dataclass(frozen=True, slots=True)
class MemoryBar:
    """The terms of one card from the first byte to the last.

    `total_bytes` is their sum, more than the card's `card_bytes` where they do not all fit.
    """

    segments: tuple[Segment, ...]
    total_bytes: int
    card_bytes: int

    @property
    def is_too_much(self) -> bool:
        """True where the terms need more than the card has."""
        return self.total_bytes > self.card_bytes


def memory_bar_of(result: SizingResult) -> MemoryBar | None:
    """Lay the terms side by side; None where no memory was estimated."""
    total = sum(max(0, term.likely) for term in result.memory)
    if not total:
        return None
    segments = []
    start = 0.0
    for term in result.memory:
        width = 100 * max(0, term.likely) / total
        segments.append(
            Segment(
                term.code, term.low, term.likely, term.high, term.source,
                start=round(start, 3), width=round(width, 3),
            )
        )  # fmt: skip
        start += width
    return MemoryBar(tuple(segments), total, result.total_memory_bytes or total)
