"""Mixes of requests: lengths and what is met at a random moment."""

import pytest

from app.core.workload import histogram_workload, lognormal_workload, moments


@pytest.mark.parametrize(("mean", "p95"), [(2000, 6000), (500, 600), (20_000, 70_000)])
def test_a_lognormal_has_the_mean_and_percentile_it_was_given(mean: int, p95: int) -> None:
    """The mean is met within 1 %, and one request in twenty is longer than the percentile."""
    workload = lognormal_workload(mean, p95, 0.2)
    longer = sum(each.share for each in workload.lengths if each.longest > p95)
    assert workload.mean_tokens() == pytest.approx(mean, rel=0.01)
    assert longer == pytest.approx(0.05, abs=0.008)


def test_equal_mean_and_percentile_are_one_length() -> None:
    """Without spread every request has the mean length."""
    (only,) = lognormal_workload(3000, 3000, 0.3).lengths
    assert (only.shortest, only.longest, only.share) == (3000, 3000, 1.0)


def test_a_spread_too_wide_becomes_the_widest_lognormal() -> None:
    """A percentile no lognormal of that mean can have is not a reason to fail."""
    assert lognormal_workload(100, 100_000, 0.2) == lognormal_workload(100, 10_000, 0.2)


def test_long_answers_are_met_more_often() -> None:
    """One request of 1,000 answer tokens among nine of 100 is met more than half of the time."""
    workload = histogram_workload([100, 999, 1000], [9, 0, 1], 1.0)
    long = sum(each.weight for each in moments(workload, 2000) if each.most == 999)
    assert long == pytest.approx(1000 / (1000 + 9 * 50), rel=0.03)


def test_a_request_holds_its_prompt_first_and_never_its_last_token() -> None:
    """A request of 100 tokens with 20 answered holds 80 to 99: the last is not computed."""
    (only,) = moments(lognormal_workload(100, 100, 0.2), 4096)
    assert (only.fewest, only.most, only.weight) == (80, 99, 1.0)


def test_the_sufficient_context_covers_999_of_1000() -> None:
    """Lengths up to 3,000 are covered by the next full kilotoken; one bin is not needed whole."""
    workload = histogram_workload([1000, 3000], [5, 5], 0.2)
    assert workload.sufficient_max_model_len() == 3072
    assert workload.sufficient_max_model_len(covered=0.5) == 1024


def test_a_histogram_without_requests_is_refused() -> None:
    """Nothing observed is no distribution."""
    with pytest.raises(ValueError, match="no requests"):
        histogram_workload([100], [0], 0.2)
