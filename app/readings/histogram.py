"""Prometheus histograms of request lengths: mean and quantile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram: requests at or below each upper bound (`le`), their sum and count."""

    buckets: Mapping[float, float]
    total: float
    count: float

    def mean(self) -> float | None:
        """Sum over count, exact; None without requests."""
        return self.total / self.count if self.count > 0 else None

    def quantile(self, share: float, cap: float | None = None) -> float | None:
        """Length that `share` of the requests do not exceed, interpolated inside its bucket.

        A quantile in the unbounded bucket is the greatest finite bound; none exceeds `cap`, because
        vLLM's buckets go on in steps of 1-2-5 up to the context length and not exactly to it.
        """
        bounds = sorted(self.buckets)
        if not bounds or self.buckets[bounds[-1]] <= 0:
            return None
        rank = share * self.buckets[bounds[-1]]
        lower = below = 0.0
        value = 0.0
        for bound in bounds:
            reached = self.buckets[bound]
            if math.isinf(bound):
                value = lower
                break
            if reached >= rank:
                inside = reached - below
                value = lower + (bound - lower) * ((rank - below) / inside if inside > 0 else 1.0)
                break
            lower, below = bound, reached
        return value if cap is None else min(value, cap)

    def since(self, earlier: Histogram) -> Histogram:
        """What was added after an earlier reading of the same histogram."""
        return Histogram(
            {bound: max(value - earlier.buckets.get(bound, 0.0), 0.0)
             for bound, value in self.buckets.items()},
            max(self.total - earlier.total, 0.0),
            max(self.count - earlier.count, 0.0),
        )  # fmt: skip
