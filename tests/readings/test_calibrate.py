"""Calibrating: a measured start is met exactly, and says what other starts will print."""

import statistics
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import permutations

import pytest

from app.catalog.catalogue import Catalogue
from app.core.request import Measured, SizingRequest
from app.core.sizing import measured_here, predicted_terms, size
from app.core.units import GIB
from app.readings.calibrate import calibrate
from app.readings.observation import Failure, Observed
from app.tools.starts import Start, read_starts
from app.wizard.answers import parse_answers
from app.wizard.sizing_request import to_request

FIGURES = {field.name for field in fields(Observed)}
# Starts with one set of flags printed 9.10 and 10.33 GiB: the compile cache was empty or filled.
COMPILE_CACHE = ("s01", "l4")
# Two models that share nothing but the card, one of them outside every estimate.
UNLIKE_MODELS = ("x05", "l40s")
# Three starts with the same flags differ by 1.2 % among themselves: the host's memory is shared.
SHARED_MEMORY = ("s12", "gb10")


@pytest.fixture(scope="module")
def servers(catalogue: Catalogue) -> dict[tuple[str, str], list[Start]]:
    """Observed starts that print memory and tokens, by publication and card."""
    found: dict[tuple[str, str], list[Start]] = {}
    for start in read_starts(catalogue)[0]:
        if start.request is not None and {"available_kv_cache_gib", "kv_cache_size_tokens"} <= set(
            start.printed
        ):
            found.setdefault((start.source_group, start.request.gpu.slug), []).append(start)
    return {server: starts for server, starts in found.items() if len(starts) > 1}


def observed_of(start: Start) -> Observed:
    """What the log of a start printed."""
    return Observed(
        **{name: value for name, value in start.printed.items() if name in FIGURES}  # type: ignore[arg-type]
    )


def token_errors(starts: list[Start], *, calibrated: bool = True) -> Iterator[float]:
    """Error of every start's tokens in percent, each calibrated from each of the others."""
    for known, other in permutations(starts, 2):
        assert known.request is not None
        assert other.request is not None
        request = other.request
        if calibrated:
            measured = calibrate(known.request, observed_of(known)).measured
            request = replace(request, measured=replace(measured, taken_on=known.request))
        cache = size(request).cache
        tokens = cache.kv_cache_size_tokens if cache else 0
        yield abs(tokens / other.printed["kv_cache_size_tokens"] - 1) * 100


def test_a_calibrated_start_prints_its_own_tokens(
    servers: dict[tuple[str, str], list[Start]],
) -> None:
    """Calibrated from its log, a server's tokens are met to the rounding of the printed GiB."""
    for starts in servers.values():
        for start in starts:
            assert start.request is not None
            measured = calibrate(start.request, observed_of(start)).measured
            cache = size(replace(start.request, measured=measured)).cache
            assert cache is not None
            rounding = 0.005 / start.printed["available_kv_cache_gib"] + 1e-3
            assert cache.kv_cache_size_tokens == pytest.approx(
                start.printed["kv_cache_size_tokens"], rel=rounding
            )


def test_one_start_predicts_the_others_of_its_server(
    servers: dict[tuple[str, str], list[Start]],
) -> None:
    """Calibrated from one start, the other starts of its server are met to 1 % in the median."""
    steady = {server: starts for server, starts in servers.items()
              if server not in {COMPILE_CACHE, UNLIKE_MODELS, SHARED_MEMORY}}  # fmt: skip
    assert len(steady) >= 3
    for server, starts in steady.items():
        assert statistics.median(token_errors(starts)) <= 1.0, server
    everything = [error for starts in servers.values() for error in token_errors(starts)]
    assert len(everything) > 150
    assert statistics.median(everything) <= 1.0


def test_calibrating_is_better_than_not(servers: dict[tuple[str, str], list[Start]]) -> None:
    """Without calibration the median error of the same starts is larger: the control."""
    calibrated = [e for starts in servers.values() for e in token_errors(starts)]
    plain = [e for starts in servers.values() for e in token_errors(starts, calibrated=False)]
    assert statistics.median(plain) > 1.2 * statistics.median(calibrated)


@pytest.fixture(scope="module")
def base(catalogue: Catalogue) -> SizingRequest:
    """One server: Llama 3.1 8B on an L40S, 0.25.1, which counts its graphs."""
    asked = [("model", "llama-3.1-8b"), ("gpu", "l40s"), ("vllm_version", "0.25.1"),
             ("max_model_len", "8192")]  # fmt: skip
    request = to_request(parse_answers(asked).answers, catalogue).request
    assert request is not None
    return request


MEASURED = Measured(
    weights_bytes=28 * GIB,
    peak_activation_bytes=2 * GIB,
    non_torch_bytes=1 * GIB,
    cudagraph_bytes=GIB // 2,
)


def carry_over(measured: Measured, there: SizingRequest, here: SizingRequest) -> Measured:
    """What holds of a measurement on another server."""
    return measured_here(replace(here, measured=replace(measured, taken_on=there)))


def _terms(measured: Measured) -> tuple[int | None, ...]:
    return (
        measured.weights_bytes, measured.peak_activation_bytes, measured.non_torch_bytes,
        measured.cudagraph_bytes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flag", "value"),
    [("max_model_len", 4096), ("kv_cache_dtype", "fp8"), ("gpu_memory_utilization", 0.8),
     ("block_size", 32)],
)  # fmt: skip
def test_lengths_and_shares_change_no_term(base: SizingRequest, flag: str, value: object) -> None:
    """Context, KV dtype, utilization and block size leave every measured term as it is."""
    here = replace(base, engine_args=base.engine_args.with_flag(flag, value))
    assert _terms(carry_over(MEASURED, base, here)) == _terms(MEASURED)


def test_another_card_of_the_same_kind_changes_no_term(
    base: SizingRequest, catalogue: Catalogue
) -> None:
    """The terms are bytes per card: a discrete card in place of another keeps them."""
    here = replace(base, gpu=catalogue.gpus["l4"].spec)
    assert _terms(carry_over(MEASURED, base, here)) == _terms(MEASURED)


def test_terms_grow_as_their_estimates_grow(base: SizingRequest) -> None:
    """Twice the sequences scale the peak as its estimate, and add the buffers that they take."""
    here = replace(base, engine_args=base.engine_args.with_flag("max_num_seqs", 1024))
    then, now = predicted_terms(base), predicted_terms(here)
    carried = carry_over(MEASURED, base, here)
    growth = now["peak_activation"].likely / then["peak_activation"].likely
    assert growth > 1
    assert carried.peak_activation_bytes == pytest.approx(2 * GIB * growth, abs=1)
    assert carried.weights_bytes == MEASURED.weights_bytes


def test_a_split_shares_the_measured_weights(base: SizingRequest) -> None:
    """Over two cards the measured weights shrink as the estimate of the weights shrinks."""
    here = replace(base, layout=replace(base.layout, tensor_parallel_size=2))
    then, now = predicted_terms(base), predicted_terms(here)
    carried = carry_over(MEASURED, base, here)
    share = now["weights"].likely / then["weights"].likely
    assert 0.5 <= share < 0.6
    assert carried.weights_bytes == pytest.approx(28 * GIB * share, abs=1)


def test_graphs_that_are_switched_off_take_nothing(base: SizingRequest) -> None:
    """Under --enforce-eager no measured graph memory remains."""
    here = replace(base, engine_args=base.engine_args.with_flag("enforce_eager", value=True))
    assert carry_over(MEASURED, base, here).cudagraph_bytes == 0


def test_other_files_and_other_releases_take_the_estimate(
    base: SizingRequest, catalogue: Catalogue
) -> None:
    """Weights of other files are estimated; of another release everything but the weights is."""
    files = catalogue.models["llama-3.1-8b"].select("fp8")[0].checkpoint
    assert carry_over(MEASURED, base, replace(base, checkpoint=files)).weights_bytes is None
    release = catalogue.releases.release_for("0.32.0")[0]
    carried = carry_over(MEASURED, base, replace(base, release=release))
    assert carried.weights_bytes is not None
    assert _terms(carried)[1:] == (None, None, None)


def test_a_carried_measurement_keeps_a_range(base: SizingRequest) -> None:
    """The measured start itself has no range; another one does, because starts differ."""
    exact = size(replace(base, measured=MEASURED)).tokens_range
    here = replace(base, engine_args=base.engine_args.with_flag("max_model_len", 4096))
    carried = replace(here, measured=replace(MEASURED, taken_on=base))
    other = size(carried).tokens_range
    assert exact is not None
    assert other is not None
    assert exact.low == exact.likely == exact.high
    assert other.low < other.likely < other.high


def test_memory_of_a_failed_start_counts(base: SizingRequest) -> None:
    """A start that failed for want of cache calibrates by the memory its text names."""
    failure = Failure("kv_cache_too_small", 1, "profiling", {"available_gib": 3.0})
    observed = Observed(weights_gib=28.0, total_memory_gib=44.39)
    request = replace(base, measured=calibrate(base, observed, failure).measured)
    available = size(request).available_kv_cache_memory
    assert available is not None
    assert available.likely == pytest.approx(3 * GIB, abs=2**20)


def test_without_an_estimate_the_cache_counts(catalogue: Catalogue, base: SizingRequest) -> None:
    """A release without memory estimate is calibrated by its available memory alone."""
    old = replace(base, release=catalogue.releases.release_for("0.6.6")[0])
    measured = calibrate(old, Observed(available_kv_cache_gib=12.5)).measured
    assert measured.available_kv_cache_memory_bytes == round(12.5 * GIB)
    assert measured.peak_activation_bytes is None


ALL_PRINTED = Observed(
    weights_gib=14.99, peak_activation_gib=1.21, non_torch_gib=0.08, cudagraph_estimate_gib=0.5,
    total_memory_gib=44.39, max_concurrency_len=8192,
)  # fmt: skip


def test_the_printed_tokens_are_met_to_the_last(base: SizingRequest) -> None:
    """Where every term is printed, with two decimals, the sizing still gives the printed tokens."""
    left = size(replace(base, measured=calibrate(base, ALL_PRINTED).measured))
    assert left.cache is not None
    assert left.available_kv_cache_memory is not None
    printed = left.cache.kv_cache_size_tokens + 32
    gib = round(left.available_kv_cache_memory.likely / GIB, 2)
    observed = replace(ALL_PRINTED, kv_cache_size_tokens=printed, available_kv_cache_gib=gib)
    calibration = calibrate(base, observed)
    cache = size(replace(base, measured=calibration.measured)).cache
    assert cache is not None
    assert cache.kv_cache_size_tokens == printed
    assert "non_torch" in calibration.printed


def test_what_printed_terms_miss_is_no_printed_figure(base: SizingRequest) -> None:
    """Terms whose sum leaves more than the printed cache yield to it, and the rest is a sum."""
    free = size(replace(base, measured=calibrate(base, ALL_PRINTED).measured))
    assert free.available_kv_cache_memory is not None
    gib = round(free.available_kv_cache_memory.likely / GIB, 2) - 0.55
    calibration = calibrate(base, replace(ALL_PRINTED, available_kv_cache_gib=gib))
    left = size(replace(base, measured=calibration.measured)).available_kv_cache_memory
    assert left is not None
    assert left.likely == pytest.approx(gib * GIB, abs=2**20)
    assert calibration.printed == {"weights", "peak_activation", "cudagraph_estimate"}
