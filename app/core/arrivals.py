"""From people to requests in flight: Little's law, and the peak around its mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

PEAK_SHARE = 0.99
SECONDS_PER_HOUR = 3600
_NORMAL_FROM = 500.0
_Z99 = 2.3263478740408408


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests in flight in the busiest hour: their mean, and what 99 % of moments keep to."""

    mean: float
    peak: int


def requests_in_flight(users: int, requests_per_hour: float, seconds: float) -> InFlight:
    """Turn users into requests in flight: each sends so many an hour, each takes so long.

    The mean is arrivals per second times seconds (J. D. C. Little, Oper. Res. 9, 1961). Requests
    that come independently of each other are in flight in a Poisson-distributed number, whatever
    the spread of their times (the M/G/infinity queue), which gives the peak. At least 1.
    """
    mean = users * requests_per_hour / SECONDS_PER_HOUR * seconds
    return InFlight(mean, max(1, _poisson_quantile(mean, PEAK_SHARE)))


def _poisson_quantile(mean: float, share: float) -> int:
    if mean > _NORMAL_FROM:
        return math.ceil(mean + _Z99 * math.sqrt(mean))
    count, chance = 0, math.exp(-mean)
    total = chance
    while total < share:
        count += 1
        chance *= mean / count
        total += chance
    return count
