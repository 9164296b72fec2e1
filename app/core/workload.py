"""The requests a server really gets: how long they are, and what one holds at a random moment.

Definitions. A request of T tokens has a prompt and an answer of A tokens, `answer_share` of T and
at least one. It is in flight for A steps: one reads the prompt and gives the first token of the
answer, each further one computes the token before and gives the next. (A long prompt is read in
several steps; they are few beside the answer's and left out.) So at a random moment

* a request is met in proportion to A: long answers are in flight for longer;
* it is at any of its A steps alike, and holds T - A to T - 1 tokens.

Requests longer than the declared length are refused by vLLM and never in flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

LENGTHS = 256
P95 = 0.95
_WIDEST_SIGMA = NormalDist().inv_cdf(P95)
COVERED_SHARE = 0.999
LENGTH_STEP = 1024


@dataclass(frozen=True, slots=True)
class LengthBin:
    """A share of all requests, of lengths from `shortest` to `longest` tokens alike."""

    shortest: int
    longest: int
    share: float


@dataclass(frozen=True, slots=True)
class Workload:
    """A mix of requests.

    `lengths` are bins of prompt and answer together whose shares sum to 1. `answer_share` is the
    generated part of every request. `shared_prefix_tokens` are the first tokens that all requests
    have in common, such as a system prompt; prefix caching keeps their full blocks once.
    """

    lengths: tuple[LengthBin, ...]
    answer_share: float
    shared_prefix_tokens: int = 0

    def accepted(self, max_model_len: int) -> float:
        """Share of the requests that are not longer than the declared length."""
        return sum(each.share * _part_up_to(each, max_model_len) for each in self.lengths)

    def mean_tokens(self) -> float:
        """Mean length, prompt and answer together."""
        return sum(each.share * (each.shortest + each.longest) / 2 for each in self.lengths)

    def sufficient_max_model_len(self, covered: float = COVERED_SHARE) -> int:
        """Shortest context, in steps of 1,024 tokens, that `covered` of all requests keep to."""
        longest = max(each.longest for each in self.lengths)
        left, right = 1, -(-longest // LENGTH_STEP)
        while left < right:
            middle = (left + right) // 2
            if self.accepted(middle * LENGTH_STEP) >= covered:
                right = middle
            else:
                left = middle + 1
        return left * LENGTH_STEP


@dataclass(frozen=True, slots=True)
class Moment:
    """Requests met at a random moment: `weight` of them hold between two numbers of tokens.

    Every number from `fewest` to `most` is as likely as any other.
    """

    weight: float
    fewest: int
    most: int


def lognormal_workload(
    mean_tokens: int, p95_tokens: int, answer_share: float, shared_prefix_tokens: int = 0
) -> Workload:
    """Describe lengths by their mean and the length that one in twenty exceeds.

    A lognormal cut into 256 equal shares; with the 95th percentile at the mean all are of one
    length. A 95th percentile above 3.87 times the mean has no lognormal; the widest one is taken.
    """
    ratio = math.log(max(p95_tokens, mean_tokens) / mean_tokens)
    sigma = _WIDEST_SIGMA - math.sqrt(max(0.0, _WIDEST_SIGMA**2 - 2 * ratio))
    if sigma == 0:
        only = (LengthBin(mean_tokens, mean_tokens, 1.0),)
        return Workload(only, answer_share, shared_prefix_tokens)
    lengths = NormalDist(math.log(mean_tokens) - sigma**2 / 2, sigma)
    middles = [math.exp(lengths.inv_cdf((i + 0.5) / LENGTHS)) for i in range(LENGTHS)]
    scale = mean_tokens * LENGTHS / sum(middles)  # the shares' middles miss a part of the tail
    tokens = [max(2, round(middle * scale)) for middle in middles]
    bins = tuple(LengthBin(length, length, 1 / LENGTHS) for length in tokens)
    return Workload(bins, answer_share, shared_prefix_tokens)


def histogram_workload(
    upper_bounds: Sequence[int],
    counts: Sequence[int],
    answer_share: float,
    shared_prefix_tokens: int = 0,
) -> Workload:
    """Describe lengths by a histogram, such as vLLM's /metrics give: requests up to each bound.

    `counts[i]` requests lie above the bound before and up to `upper_bounds[i]`, evenly. Raises
    ValueError without a request.
    """
    total = sum(counts)
    if not total:
        raise ValueError("no requests")
    lows = (1, *(bound + 1 for bound in upper_bounds[:-1]))
    bins = tuple(
        LengthBin(max(2, low), max(2, high), count / total)
        for low, high, count in zip(lows, upper_bounds, counts, strict=True)
        if count
    )
    return Workload(bins, answer_share, shared_prefix_tokens)


def moments(workload: Workload, max_model_len: int) -> tuple[Moment, ...]:
    """Tell what requests hold at a random moment; weights sum to 1.

    Empty where no request keeps to the declared length.
    """
    found = list(_unweighted(workload, max_model_len))
    total = sum(each.weight for each in found)
    return tuple(Moment(each.weight / total, each.fewest, each.most) for each in found)


_PARTS_OF_A_BIN = 8


def _unweighted(workload: Workload, max_model_len: int) -> Iterator[Moment]:
    for each in workload.lengths:
        if each.shortest > max_model_len:
            continue
        longest = min(each.longest, max_model_len)
        share = each.share * _part_up_to(each, max_model_len)
        parts = min(_PARTS_OF_A_BIN, longest - each.shortest + 1)
        for part in range(parts):
            span = longest - each.shortest + 1
            length = each.shortest + (span * (2 * part + 1)) // (2 * parts)
            answer = answer_tokens(length, workload.answer_share)
            yield Moment(share / parts * answer, length - answer, length - 1)


def answer_tokens(length: int, answer_share: float) -> int:
    """Tokens of a request that are generated; the prompt has at least one."""
    return min(length - 1, max(1, round(length * answer_share)))


def _part_up_to(each: LengthBin, max_model_len: int) -> float:
    if each.longest <= max_model_len:
        return 1.0
    return max(0.0, (max_model_len - each.shortest + 1) / (each.longest - each.shortest + 1))
