"""A measured load against the cautious end of the cache and against the batch limit."""

import pytest

from app.core.coefficients import Bounds
from app.core.layout import Layout
from app.core.load import Load, check_load, concurrency_at
from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from tests.core.memory_case import release, request


def checks(load: Load, asked: SizingRequest | None = None) -> dict[str, dict[str, Number]]:
    """Return the checks of a load by code; the cache holds 100 requests of 1,000 tokens."""
    asked = asked or request(num_gpu_blocks_override=6300, max_num_seqs=256)
    return {check.code: dict(check.numbers) for check in check_load(size(asked), load)}


def test_nothing_measured_nothing_checked() -> None:
    """Each check needs its measurement."""
    assert checks(Load()) == {}


def test_nothing_is_checked_where_no_cache_fits() -> None:
    """A failing start has no figure to compare with."""
    failing = size(request(layout=Layout(tensor_parallel_size=3)))
    assert check_load(failing, Load(10, 10, 10)) == ()
    with pytest.raises(ValueError, match="no cache"):
        concurrency_at(failing, 10)


@pytest.mark.parametrize(
    ("p95", "code"),
    [
        (1001, "length_too_short"),
        (1000, "length_realistic"),
        (801, "length_realistic"),
        (799, "length_longer_than_needed"),
    ],
)
def test_the_declared_length_fits_what_is_sent(p95: int, code: str) -> None:
    """Longer requests are refused; a quarter of room is realistic, more is waste."""
    assert checks(Load(p95_request_tokens=p95)) == {
        code: {"p95_request_tokens": p95, "max_model_len": 1000}
    }


@pytest.mark.parametrize(
    ("peak", "code"),
    [
        (100, "peak_fits"),
        (101, "peak_exceeds_worst_case"),
        (256, "peak_exceeds_worst_case"),
        (257, "peak_exceeds_batch"),
    ],
)
def test_the_peak_is_compared_with_the_printed_figure_and_the_batch(peak: int, code: str) -> None:
    """Up to the printed figure the cache cannot fill, whatever their length."""
    assert checks(Load(peak_requests=peak)) == {
        code: {"peak_requests": peak, "max_concurrency": 100.0, "max_num_seqs": 256}
    }


def test_all_engines_count() -> None:
    """Two copies hold twice as many, in cache and batch."""
    asked = request(num_gpu_blocks_override=6300, max_num_seqs=256, layout=Layout(replicas=2))
    assert checks(Load(peak_requests=200), asked)["peak_fits"] == {
        "peak_requests": 200,
        "max_concurrency": 200.0,
        "max_num_seqs": 512,
    }


@pytest.mark.parametrize(
    ("mean", "code", "real"),
    [
        (16, "batch_reached_first", 6300.0),
        (384, "batch_reached_first", 6300 / 24),
        (400, "cache_reached_first", 6300 / 25),
        (5000, "cache_reached_first", 100.0),
    ],
)
def test_at_real_lengths_cache_or_batch_is_reached_first(mean: int, code: str, real: float) -> None:
    """Blocks of the mean length against max_num_seqs; longer than declared counts as declared."""
    assert checks(Load(mean_request_tokens=mean)) == {
        code: {
            "mean_request_tokens": mean,
            "real_concurrency": pytest.approx(real),
            "max_num_seqs": 256,
        }
    }


def test_the_cautious_end_counts() -> None:
    """With a range the low figure is compared, at any length."""
    wide = release(unexplained_bytes=Bounds(0.0, 0.0, 20.0 * GIB))
    result = size(request(release=wide, max_num_seqs=100_000, max_num_batched_tokens=100_000))
    assert result.concurrency_range is not None
    low = result.concurrency_range.low
    (check,) = check_load(result, Load(peak_requests=10))
    assert dict(check.numbers)["max_concurrency"] == low
    assert concurrency_at(result, 1000) == pytest.approx(low)
    assert concurrency_at(result, 0) == pytest.approx(low * 63)
