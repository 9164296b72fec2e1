"""What a metrics page says should be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from app.core.reasons import Number
from app.readings.metrics_page import MetricsReading

Severity = Literal["no", "tight", "info"]

_FAR_ABOVE: Final = 4
_HIT_RATE_WORTH_A_WORD: Final = 0.2
_SIXTEEN_BIT: Final = frozenset({"auto", "bfloat16", "float16", "half"})


@dataclass(frozen=True, slots=True)
class MetricsFinding:
    """One finding.

    Codes: `preemptions` (num_preemptions, per_request), `preemptions_earlier` (the same, on a page
    that has room now), `waiting_for_cache` (waiting), `waiting_for_places` (waiting, running),
    `context_far_above_requests` (max_model_len,
    p95_request_tokens), `batch_above_cache` (max_num_seqs, requests_of_mean_length),
    `batch_below_cache` (the same), `cache_16_bit` (cache_dtype), `prefix_cache` (hit_rate),
    `prefix_cache_off`, `blocks_overridden` (num_gpu_blocks_override).
    """

    code: str
    severity: Severity
    numbers: Mapping[str, Number]


def find_in_metrics(reading: MetricsReading) -> tuple[MetricsFinding, ...]:
    """Find what could be better; nothing without a verdict."""
    verdict = reading.verdict
    if verdict is None:
        return ()
    found = (
        *_preemptions(reading, has_room=verdict.code in {"room_to_spare", "idle"}),
        *_waiting(reading, cache_bound=verdict.code == "cache_bound"),
        *_lengths(reading),
        *_places(verdict.numbers),
        *_cache(reading),
    )
    order: Mapping[Severity, int] = {"no": 0, "tight": 1, "info": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def _preemptions(reading: MetricsReading, *, has_room: bool) -> Iterator[MetricsFinding]:
    """Requests that lost their place; of a single page with room now nobody knows when."""
    total = sum(each.num_preemptions or 0 for each in reading.engines)
    finished = sum(each.num_requests_finished or 0 for each in reading.engines)
    change = reading.change
    between = change.num_preemptions if change else None
    if between == 0 or not total:
        return
    numbers: dict[str, Number] = {"num_preemptions": total}
    if finished:
        numbers["per_request"] = total / finished
    if between is not None:
        numbers["between_pages"] = between
    if between is None and has_room:
        yield MetricsFinding("preemptions_earlier", "info", numbers)
    else:
        yield MetricsFinding("preemptions", "tight", numbers)


def _waiting(reading: MetricsReading, *, cache_bound: bool) -> Iterator[MetricsFinding]:
    waiting = sum(each.num_requests_waiting or 0 for each in reading.engines)
    if not waiting:
        return
    running = sum(each.num_requests_running or 0 for each in reading.engines)
    code = "waiting_for_cache" if cache_bound else "waiting_for_places"
    yield MetricsFinding(code, "tight", {"waiting": waiting, "running": running})


def _lengths(reading: MetricsReading) -> Iterator[MetricsFinding]:
    for engine in reading.engines[:1]:
        length, p95 = engine.max_model_len, engine.p95_request_tokens
        if length and p95 and length >= _FAR_ABOVE * p95:
            numbers: dict[str, Number] = {"max_model_len": length, "p95_request_tokens": p95}
            yield MetricsFinding("context_far_above_requests", "info", numbers)


def _places(numbers: Mapping[str, float]) -> Iterator[MetricsFinding]:
    requests, places = numbers.get("requests_of_mean_length"), numbers.get("max_num_seqs")
    if requests is None or places is None:
        return
    both: dict[str, Number] = {"max_num_seqs": places, "requests_of_mean_length": requests}
    if requests < places:
        yield MetricsFinding("batch_above_cache", "info", both)
    elif requests > 2 * places:
        yield MetricsFinding("batch_below_cache", "info", both)


def _cache(reading: MetricsReading) -> Iterator[MetricsFinding]:
    for engine in reading.engines[:1]:
        if (engine.cache_dtype or "") in _SIXTEEN_BIT:
            yield MetricsFinding("cache_16_bit", "info", {"cache_dtype": engine.cache_dtype or ""})
        if engine.enable_prefix_caching is False:
            yield MetricsFinding("prefix_cache_off", "info", {})
        rate = engine.prefix_cache_hit_rate
        if rate is not None and rate >= _HIT_RATE_WORTH_A_WORD:
            yield MetricsFinding("prefix_cache", "info", {"hit_rate": rate})
        if engine.num_gpu_blocks_override is not None:
            numbers: dict[str, Number] = {"num_gpu_blocks_override": engine.num_gpu_blocks_override}
            yield MetricsFinding("blocks_overridden", "tight", numbers)
