"""Users into requests in flight."""

import math

import pytest

from app.core.arrivals import requests_in_flight


def test_littles_law_gives_the_mean() -> None:
    """200 users, 6 requests an hour, 20 seconds each: 6.67 in flight on average."""
    found = requests_in_flight(200, 6, 20)
    assert found.mean == pytest.approx(200 * 6 / 3600 * 20)
    assert found.peak == 13


@pytest.mark.parametrize("mean", [0.5, 3.0, 40.0, 450.0])
def test_the_peak_covers_99_moments_of_100(mean: float) -> None:
    """The peak is the smallest number that a Poisson count exceeds in at most 1 % of moments."""
    peak = requests_in_flight(3600, 1, mean).peak

    def covered(most: int) -> float:
        return sum(
            math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most + 1)
        )

    assert covered(peak) >= 0.99 > covered(peak - 1)


def test_large_means_continue_smoothly() -> None:
    """Where the normal law takes over, the peak goes on growing without a jump."""
    below, above = (requests_in_flight(3600, 1, mean).peak for mean in (499.9, 500.1))
    assert 0 <= above - below <= 2


def test_somebody_is_always_served() -> None:
    """A need is at least one request."""
    assert requests_in_flight(1, 0.01, 0.1).peak == 1
