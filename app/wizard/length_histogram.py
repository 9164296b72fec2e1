"""Lengths of requests as people paste them: `1000:12, 2000:40`, requests up to each length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.wizard.readers import UnreadableError, read_integer

MAX_BINS: Final = 100
MAX_LENGTH: Final = 2_000
LONGEST_REQUEST: Final = 10_000_000
MOST_REQUESTS: Final = 10**12
_BETWEEN: Final = re.compile(r"[,;\s]+")
_AROUND_COLON: Final = re.compile(r"\s*:\s*")


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """`counts[i]` requests lie above the bound before and up to `upper_bounds[i]` tokens."""

    upper_bounds: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def requests(self) -> int:
        """All requests."""
        return sum(self.counts)


def read_length_histogram(text: str) -> LengthHistogram:
    """Read pairs of a length and a number of requests, lengths ascending.

    Raises UnreadableError: `too_long` (maximum), `histogram_pair` (pair), `histogram_order`
    (pair, before), `histogram_bins` (bins, maximum), `histogram_empty`.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError("too_long", (("maximum", MAX_LENGTH),))
    pairs = [pair for pair in _BETWEEN.split(_AROUND_COLON.sub(":", text.strip())) if pair]
    if len(pairs) > MAX_BINS:
        raise UnreadableError("histogram_bins", (("bins", len(pairs)), ("maximum", MAX_BINS)))
    bounds: list[int] = []
    counts: list[int] = []
    for pair in pairs:
        bound, count = _pair(pair)
        if bounds and bound <= bounds[-1]:
            raise UnreadableError("histogram_order", (("pair", pair), ("before", bounds[-1])))
        bounds.append(bound)
        counts.append(count)
    if not sum(counts):
        raise UnreadableError("histogram_empty")
    return LengthHistogram(tuple(bounds), tuple(counts))


def histogram_text(upper_bounds: Iterable[int], counts: Iterable[int]) -> str:
    """Write a histogram as it is read."""
    pairs = zip(upper_bounds, counts, strict=True)
    return ",".join(f"{bound}:{count}" for bound, count in pairs)


def _pair(pair: str) -> tuple[int, int]:
    refused = UnreadableError("histogram_pair", (("pair", pair[:40]),))
    bound, colon, count = pair.partition(":")
    if not colon:
        raise refused
    try:
        length, requests = read_integer(bound), read_integer(count)
    except UnreadableError:
        raise refused from None
    if not 1 <= length <= LONGEST_REQUEST or not 0 <= requests <= MOST_REQUESTS:
        raise refused
    return length, requests
