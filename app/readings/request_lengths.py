"""The mix of a running server: how long its finished requests were, prompt and answer together.

vLLM counts prompts and answers in histograms of their own and never a request's sum. The longest
prompts are taken to have the longest answers: of all ways to pair them the one with the widest
spread, so a cautious one. Within a bucket lengths are spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.readings.engine_metrics import GENERATION_TOKENS, PROMPT_TOKENS
from app.readings.histogram import Histogram
from app.readings.metrics_samples import EngineSamples

_LEAST_SHARE: Final = 0.001
_MOST_SHARE: Final = 0.99
# Bounds of vLLM's buckets go 1, 2, 5, 10: the next one is at most this many times the last.
_WIDEST_STEP: Final = 2.5
_LONGEST: Final = 10_000_000
_MOST_REQUESTS: Final = 10**12


@dataclass(frozen=True, slots=True)
class RequestLengths:
    """`counts[i]` requests lie above the bound before and up to `upper_bounds[i]` tokens, evenly.

    `answer_share` is the generated part of all tokens.
    """

    upper_bounds: tuple[int, ...]
    counts: tuple[int, ...]
    answer_share: float


def request_lengths(
    engines: Sequence[EngineSamples], max_model_len: int | None
) -> RequestLengths | None:
    """Put the histograms of all engines together; None without requests or with other buckets."""
    prompt, answer = _of_all(engines, PROMPT_TOKENS), _of_all(engines, GENERATION_TOKENS)
    if prompt is None or answer is None or not prompt.count or not answer.count:
        return None
    means = prompt.total / prompt.count, answer.total / answer.count
    if not sum(means):
        return None
    counts = _counts(prompt, answer, max_model_len)
    if not any(counts.values()):
        return None
    share = min(_MOST_SHARE, max(_LEAST_SHARE, means[1] / sum(means)))
    return RequestLengths(tuple(counts), tuple(counts.values()), share)


def _of_all(engines: Sequence[EngineSamples], name: str) -> Histogram | None:
    found = [each.histogram(name) for each in engines]
    known = [each for each in found if each is not None and each.count and _is_sound(each)]
    if not known or any(set(each.buckets) != set(known[0].buckets) for each in known):
        return None
    return Histogram(
        {bound: sum(each.buckets[bound] for each in known) for bound in known[0].buckets},
        sum(each.total for each in known),
        sum(each.count for each in known),
    )


def _is_sound(histogram: Histogram) -> bool:
    """Whether there are buckets, of lengths above 0, each with all requests of those below."""
    reached = [histogram.buckets[bound] for bound in sorted(histogram.buckets)]
    bounded = min(histogram.buckets, default=0) > 0 and reached[-1] > 0
    return bounded and reached == sorted(reached) and histogram.count <= _MOST_REQUESTS


def _counts(prompt: Histogram, answer: Histogram, max_model_len: int | None) -> dict[int, int]:
    """Requests of each length by upper bound, ascending; a bound of 0 requests begins a gap."""
    parts = [tuple(_shares(each, max_model_len)) for each in (prompt, answer)]
    ends = sorted({share for part in parts for _, share in part if share})
    longest = min(_LONGEST, max_model_len or _LONGEST)
    found: dict[int, int] = {}
    begin, reached = 0.0, 0
    for end in ends:
        spans = [_span(part, begin, end) for part in parts]
        low = math.ceil(min(longest, sum(span[0] for span in spans)))
        high = math.ceil(min(longest, sum(span[1] for span in spans)))
        if low > max(found, default=0):
            found[low] = 0
        here = round(end * prompt.count)
        found[high] = found.get(high, 0) + here - reached
        begin, reached = end, here
    return found


def _shares(histogram: Histogram, max_model_len: int | None) -> Iterator[tuple[float, float]]:
    """Bounds with the share of requests up to them; the unbounded bucket ends at the context."""
    bounds = sorted(histogram.buckets)
    total, last = histogram.buckets[bounds[-1]], 1.0
    for bound in bounds:
        if not math.isinf(bound):
            last = bound
            yield bound, histogram.buckets[bound] / total
        elif total > histogram.buckets.get(last, 0.0):
            yield max(last + 1, max_model_len or _WIDEST_STEP * last), 1.0


def _span(shares: Sequence[tuple[float, float]], begin: float, end: float) -> tuple[float, float]:
    """Lengths between two shares of the requests that lie in one bucket."""
    lower = below = 0.0
    for bound, reached in shares:
        if reached > begin:
            width = (bound - lower) / (reached - below)
            return lower + (begin - below) * width, lower + (end - below) * width
        lower, below = bound, reached
    return lower, lower
