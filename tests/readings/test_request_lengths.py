"""The mix of a running server: histograms of prompts and answers put together."""

import pytest

from app.core.workload import histogram_workload
from app.readings.metrics_page import read_metrics_page
from app.readings.request_lengths import RequestLengths
from tests.readings.metrics import page


def read(text: str) -> RequestLengths | None:
    """Read the lengths of a page."""
    return read_metrics_page(text).lengths


def test_the_longest_prompts_have_the_longest_answers() -> None:
    """90 of 100 prompts up to 1,000 and 10 up to 5,000, answers 100 to 200: bounds add up."""
    found = read(page())
    assert found is not None
    assert found.upper_bounds == (600, 1190, 2190, 5200)
    assert found.counts == (0, 90, 0, 10)
    assert found.answer_share == pytest.approx(150 / (0.9 * 900 + 0.1 * 4000 + 150))


def test_requests_above_the_last_bucket_reach_the_context_of_the_server() -> None:
    """vLLM's bounds stop at 20,000 below a context of 32,768: what is longer ends there."""
    found = read(page(prompts={900: 50, 30_000: 50}, answers={150: 100}))
    assert found is not None
    assert found.upper_bounds[-1] == 32_768
    assert found.counts[-1] == 50


def test_engines_are_counted_together() -> None:
    """Two data-parallel engines with 100 requests each have a mix of 200."""
    found = read(page() + page(engine="1"))
    assert found is not None
    assert sum(found.counts) == 200


def test_the_mean_of_the_mix_is_near_the_exact_one() -> None:
    """Buckets blur lengths; the mix of a wide histogram stays within a tenth of the true mean."""
    prompts = {90: 10, 300: 30, 1_500: 40, 7_500: 15, 15_000: 5}
    answers = {15: 30, 75: 50, 350: 20}
    reading = read_metrics_page(page(prompts=prompts, answers=answers))
    lengths, mean = reading.lengths, reading.engines[0].mean_request_tokens
    assert lengths is not None
    assert mean is not None
    mix = histogram_workload(lengths.upper_bounds, lengths.counts, lengths.answer_share)
    assert mix.mean_tokens() == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize(
    "text",
    [
        page(prompts={900: 0}, answers={150: 0}),
        page().replace("request_prompt_tokens_bucket", "request_other_bucket"),
        page().replace('le="500.0"} 0.0', 'le="500.0"} 99.0'),
        page() + page(engine="1").replace('le="20000.0"', 'le="30000.0"'),
    ],
    ids=["no requests", "no buckets", "buckets that fall", "other buckets"],
)
def test_a_histogram_that_is_none_gives_no_mix(text: str) -> None:
    """Without requests or with buckets that cannot be right there is nothing to size with."""
    assert read(text) is None


def test_a_bucket_that_ends_below_zero_is_left_out() -> None:
    """The buckets that can be right give the mix, as they do without the one that cannot."""
    assert read(page().replace('le="1.0"', 'le="-1.0"')) == read(page())
