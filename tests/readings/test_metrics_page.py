"""Metrics pages: exact figures, lengths from the histograms, and what holds the server back."""

import pytest

from app.readings.metrics_page import (
    MAX_LENGTH,
    MetricsPageTooLongError,
    MetricsReading,
    read_metrics_page,
)
from tests.readings.metrics import V0_PAGE, page


def _code(reading: MetricsReading) -> str:
    assert reading.verdict is not None
    return reading.verdict.code


def _problems(reading: MetricsReading) -> list[tuple[int, str]]:
    return [(each.line, each.code) for each in reading.problems]


def test_a_page_of_a_running_engine_is_read() -> None:
    """Every figure of the engine, from gauges, counters, histograms and the information metric."""
    reading = read_metrics_page(page())
    (engine,) = reading.engines
    assert not reading.problems
    assert (engine.engine, engine.model) == ("0", "our-org/our-8B")
    assert engine.kv_cache_usage == 0.41
    assert engine.num_requests_running == 12
    assert engine.num_requests_waiting == 0
    assert engine.num_requests_waiting_by_reason == {"capacity": 0, "deferred": 0}
    assert engine.num_preemptions == 17
    assert engine.num_requests_finished == 100
    assert engine.prefix_cache_hit_rate == 0.25
    assert engine.mean_prompt_tokens == pytest.approx(0.9 * 900 + 0.1 * 4_000)
    assert engine.mean_generation_tokens == 150
    assert engine.mean_request_tokens == pytest.approx(1_360)
    assert engine.cache_dtype == "fp8_e4m3"
    assert engine.gpu_memory_utilization == 0.92
    assert engine.enable_prefix_caching is True
    assert engine.kv_cache_memory_bytes is None
    assert engine.num_gpu_blocks == 13_440
    assert engine.block_size == 16


def test_the_start_figures_are_exact_where_the_page_has_them() -> None:
    """Tokens, concurrency and, from the two, the context length of the start log."""
    (engine,) = read_metrics_page(page()).engines
    assert engine.kv_cache_size_tokens == 215_040
    assert engine.kv_cache_size_exact
    assert engine.max_concurrency == 6.5625
    assert engine.max_model_len == 32_768
    assert engine.requests_of_mean_length == pytest.approx(215_040 / 1_360)
    assert engine.tokens_per_running_request == pytest.approx(0.41 * 215_040 / 12)


def test_quantiles_are_interpolated_and_capped() -> None:
    """The 95th of 100 prompts lies half-way into the bucket from 2,000 to 5,000."""
    (engine,) = read_metrics_page(page()).engines
    assert engine.p95_prompt_tokens == pytest.approx(2_000 + 3_000 * 0.5)
    assert engine.p95_generation_tokens == pytest.approx(100 + 100 * 0.95)
    assert engine.p95_request_tokens == pytest.approx(3_500 + 195)
    long = read_metrics_page(page(prompts={32_700: 100})).engines[0]
    assert long.p95_prompt_tokens == 20_000
    short = page(prompts={4_900: 100}).replace("6.5625", "52.5")
    (capped,) = read_metrics_page(short).engines
    assert capped.max_model_len == 4_096
    assert capped.p95_prompt_tokens == 4_096
    assert capped.p95_request_tokens == 4_096


def test_older_pages_give_blocks_times_block_size() -> None:
    """Without exact figures the size is what blocks and block size make, and marked as such."""
    reading = read_metrics_page(V0_PAGE)
    (engine,) = reading.engines
    assert engine.engine == "0"
    assert engine.kv_cache_usage == 0.87
    assert engine.num_requests_swapped == 2
    assert engine.kv_cache_size_tokens == 16_000
    assert not engine.kv_cache_size_exact
    assert engine.max_model_len is None
    assert engine.prefix_cache_hit_rate is None
    assert engine.mean_request_tokens is None
    assert _code(reading) == "cache_bound"


@pytest.mark.parametrize(
    ("figures", "max_num_seqs", "code"),
    [
        ({"running": 0, "waiting": 0, "usage": 0.0}, None, "idle"),
        ({"running": 12, "usage": 0.41}, None, "room_to_spare"),
        ({"running": 12, "usage": 0.41, "waiting": 3}, None, "batch_bound"),
        ({"running": 12, "usage": 0.41}, 12, "batch_bound"),
        ({"running": 12, "usage": 0.41}, 13, "room_to_spare"),
        ({"running": 12, "usage": 0.9}, None, "cache_bound"),
        ({"running": 12, "usage": 0.97, "waiting": 3}, None, "cache_bound"),
    ],
)
def test_the_verdict(figures: dict[str, float], max_num_seqs: int | None, code: str) -> None:
    """Waiting with a full cache, waiting with room, neither, nothing at all."""
    text = page(**figures)  # type: ignore[arg-type]
    assert _code(read_metrics_page(text, max_num_seqs=max_num_seqs)) == code


@pytest.mark.parametrize(("max_num_seqs", "limit"), [(64, "max_num_seqs"), (512, "kv_cache")])
def test_the_limit_that_the_mix_meets_first(max_num_seqs: int, limit: str) -> None:
    """158 requests of mean length fit the cache: fewer places are met first, more never."""
    reading = read_metrics_page(page(), max_num_seqs=max_num_seqs)
    assert reading.verdict is not None
    assert reading.verdict.first_limit == limit
    assert reading.verdict.numbers["requests_of_mean_length"] == pytest.approx(158.1, abs=0.1)


def test_several_engines_are_judged_together() -> None:
    """Requests and capacities add up; the fullest cache counts."""
    reading = read_metrics_page(page(usage=0.2) + page(engine="1", usage=0.95, waiting=4))
    assert [engine.engine for engine in reading.engines] == ["0", "1"]
    assert reading.verdict is not None
    assert reading.verdict.code == "cache_bound"
    assert reading.verdict.numbers["kv_cache_usage"] == 0.95
    assert reading.verdict.numbers["num_requests_running"] == 24
    assert reading.verdict.numbers["kv_cache_size_tokens"] == 430_080
    assert reading.verdict.numbers["mean_request_tokens"] == pytest.approx(1_360)


def _two(first: str, second: str, **options: float) -> MetricsReading:
    return read_metrics_page(f"{first}\n---\n{second}", **options)  # type: ignore[arg-type]


def test_two_pages_give_what_happened_between_them() -> None:
    """Preemptions and lengths of the requests that finished in between, per minute where known."""
    later = page(preemptions=47, prompts={900: 90, 4_000: 70}, answers={150: 160})
    reading = _two(page(), later, seconds_between=120.0)
    assert reading.change is not None
    assert reading.change.num_preemptions == 30
    assert reading.change.num_requests_finished == 60
    assert reading.change.preemptions_per_request == 0.5
    assert reading.change.mean_request_tokens == pytest.approx(4_150)
    assert reading.change.preemptions_per_minute == 15
    assert reading.change.requests_per_minute == 30
    assert _code(reading) == "cache_bound"
    assert len(reading.engines) == 1
    assert reading.engines[0].num_preemptions == 47


def test_without_the_time_between_there_are_no_rates() -> None:
    """Counts are told, rates are not made up."""
    change = _two(page(), page()).change
    assert change is not None
    assert change.seconds is None
    assert change.preemptions_per_minute is None
    assert change.preemptions_per_request is None
    assert change.num_requests_finished == 0


def test_time_stamps_of_the_samples_give_the_time_between() -> None:
    """Pages of a federating Prometheus carry the time of each sample."""
    first = "".join(f"{line} 1700000000000\n" for line in page().splitlines() if line[0] != "#")
    second = first.replace("1700000000000", "1700000300000")
    change = _two(first, second).change
    assert change is not None
    assert change.seconds == 300


def test_an_idle_gauge_between_finished_requests_is_not_idle() -> None:
    """A server caught between two requests has been working."""
    quiet = {"running": 0, "usage": 0.0}
    later = page(prompts={900: 95, 4_000: 10}, answers={150: 105}, **quiet)  # type: ignore[arg-type]
    assert _code(_two(page(**quiet), later)) == "room_to_spare"  # type: ignore[arg-type]


def test_pages_in_the_wrong_order_are_put_right() -> None:
    """Counters only grow, so the smaller page is the earlier one."""
    reading = _two(page(preemptions=40), page(preemptions=10))
    assert _problems(reading) == [(0, "pages_swapped")]
    assert reading.change is not None
    assert reading.change.num_preemptions == 30
    assert reading.engines[0].num_preemptions == 40


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (page(created=1.6e9, preemptions=2), "counters_went_back"),
        (page(preemptions=2, prompts={900: 500}), "counters_went_back"),
        (page(engine="1"), "other_server"),
    ],
)
def test_pages_that_do_not_fit_together_are_not_compared(second: str, problem: str) -> None:
    """A restart in between, or another server: the second page stands alone, and it is said."""
    reading = _two(page(), second)
    assert reading.change is None
    assert (0, problem) in _problems(reading)
    assert reading.verdict is not None


def test_broken_lines_are_named_and_the_rest_is_read() -> None:
    """Line numbers of what Prometheus' parser refuses; other servers' metrics are ignored."""
    text = page() + 'vllm:num_requests_running{engine="0" 7\n' + "vllm:num_preemptions_total x\n"
    lines = len(page().splitlines())
    reading = read_metrics_page(text + "other:metric{ 1\n")
    assert _problems(reading) == [
        (lines + 1, "unreadable_line"), (lines + 2, "unreadable_line"),
    ]  # fmt: skip
    assert reading.engines[0].num_requests_running == 12


def test_copies_with_typographic_quotes_and_marks_are_read() -> None:
    """Quotes of a word processor, quote marks and code fences around a page change nothing."""
    text = page().replace('="', "=\u201c").replace('",', "\u201d,").replace('"}', "\u201d}")
    quoted = "```\n" + "\n".join(f"> {line}" for line in text.splitlines()) + "\n```"
    assert read_metrics_page(quoted).engines == read_metrics_page(page()).engines


def test_values_without_meaning_are_skipped() -> None:
    """NaN, infinities, absurd numbers and those below zero are no figures."""
    for value in ("NaN", "+Inf", "1e300", "-0.41"):
        reading = read_metrics_page(page().replace("} 0.41", f"}} {value}"))
        assert reading.engines[0].kv_cache_usage is None
        assert reading.verdict is None
        assert _problems(reading) == [(0, "no_cache_usage")]


def test_no_length_is_less_than_nothing() -> None:
    """A bucket that ends below zero is left out, so no length is computed inside it."""
    kept = read_metrics_page(page()).engines[0].p95_prompt_tokens
    assert kept is not None
    assert kept > 0
    for bound in ('le="1.0"', 'le="500.0"', 'le="+Inf"'):
        broken = read_metrics_page(page().replace(bound, 'le="-5.5"')).engines[0]
        assert broken.p95_prompt_tokens is None or broken.p95_prompt_tokens >= 0


def test_a_page_without_vllm_says_so() -> None:
    """Other pages, and nothing at all."""
    for text in ("", "---", "node_cpu_seconds_total 1\n", "<html></html>"):
        reading = read_metrics_page(text)
        assert reading.engines == ()
        assert reading.verdict is None
        assert _problems(reading)[-1] == (0, "no_vllm_metrics")


def test_a_third_page_is_not_read() -> None:
    """Two pages are compared; where a third begins is named."""
    reading = read_metrics_page("\n---\n".join([page()] * 3))
    assert [code for _, code in _problems(reading)] == ["more_than_two_pages"]


def test_lines_and_pages_have_a_limit() -> None:
    """A megabyte is the most; a single line has a limit of its own."""
    with pytest.raises(MetricsPageTooLongError) as caught:
        read_metrics_page("x" * (MAX_LENGTH + 1))
    assert caught.value.length == MAX_LENGTH + 1
    long = 'vllm:num_requests_running{a="' + "x" * 20_000 + '"} 1\n'
    assert (1, "line_too_long") in _problems(read_metrics_page(long + page()))
