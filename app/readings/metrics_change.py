"""What happened between two metrics pages of one server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.readings.engine_metrics import (
    CACHE_HITS,
    CACHE_QUERIES,
    GENERATION_TOKENS,
    PREEMPTIONS,
    PROMPT_TOKENS,
)
from app.readings.histogram import Histogram
from app.readings.metrics_samples import EngineSamples, MetricsProblem

_COUNTERS: Final = (
    PREEMPTIONS, f"{PROMPT_TOKENS}_count", f"{PROMPT_TOKENS}_sum", f"{GENERATION_TOKENS}_sum",
    "vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetricsChange:
    """What happened between two pages, all engines together.

    seconds               between them, from sample timestamps or as given; None where unknown
    *_per_minute          None where `seconds` is unknown
    mean_request_tokens   of the requests that finished in between
    """

    seconds: float | None
    num_requests_finished: int
    num_preemptions: int
    preemptions_per_request: float | None
    mean_request_tokens: float | None
    prefix_cache_hit_rate: float | None
    requests_per_minute: float | None
    preemptions_per_minute: float | None


def compare(
    first: list[EngineSamples],
    second: list[EngineSamples],
    seconds_between: float | None,
    problems: list[MetricsProblem],
) -> tuple[list[list[EngineSamples]], MetricsChange | None]:
    """The pages in order of time, and what changed; no change where they do not fit together."""
    earlier_by_engine = {(each.engine, each.model): each for each in first}
    pairs = [
        (earlier_by_engine[each.engine, each.model], each)
        for each in second
        if (each.engine, each.model) in earlier_by_engine
    ]
    if len(pairs) != len(second):
        problems.append(MetricsProblem(0, "other_server"))
        return [first, second], None
    if any(_restarted(earlier, later) for earlier, later in pairs):
        problems.append(MetricsProblem(0, "counters_went_back"))
        return [first, second], None
    if any(_lower(later, earlier) for earlier, later in pairs):
        if any(_lower(earlier, later) for earlier, later in pairs):
            problems.append(MetricsProblem(0, "counters_went_back"))
            return [first, second], None
        problems.append(MetricsProblem(0, "pages_swapped"))
        first, second = second, first
        pairs = [(later, earlier) for earlier, later in pairs]
    return [first, second], _difference(pairs, seconds_between)


def _lower(one: EngineSamples, other: EngineSamples) -> bool:
    """Whether a counter of `one` is below that of `other`."""
    return any(
        value < reference
        for name in _COUNTERS
        if (value := one.value(name)) is not None and (reference := other.value(name)) is not None
    )


def _restarted(earlier: EngineSamples, later: EngineSamples) -> bool:
    """Whether the counters were created anew in between."""
    names = ("vllm:num_preemptions_created", "vllm:prompt_tokens_created")
    one, other = earlier.value(*names), later.value(*names)
    return one is not None and other is not None and one != other


def _difference(
    pairs: Sequence[tuple[EngineSamples, EngineSamples]], seconds_between: float | None
) -> MetricsChange:
    prompts = [_added(earlier, later, PROMPT_TOKENS) for earlier, later in pairs]
    generations = [_added(earlier, later, GENERATION_TOKENS) for earlier, later in pairs]
    finished = sum(each.count for each in prompts if each)
    tokens = sum(each.total for each in (*prompts, *generations) if each)
    preemptions = sum(_grown(earlier, later, PREEMPTIONS) for earlier, later in pairs)
    queries = sum(_grown(earlier, later, *CACHE_QUERIES) for earlier, later in pairs)
    hits = sum(_grown(earlier, later, *CACHE_HITS) for earlier, later in pairs)
    seconds = seconds_between or _seconds(pairs)
    minutes = seconds / 60 if seconds and seconds > 0 else None
    return MetricsChange(
        seconds=seconds,
        num_requests_finished=int(finished),
        num_preemptions=int(preemptions),
        preemptions_per_request=preemptions / finished if finished else None,
        mean_request_tokens=tokens / finished if finished else None,
        prefix_cache_hit_rate=hits / queries if queries else None,
        requests_per_minute=finished / minutes if minutes else None,
        preemptions_per_minute=preemptions / minutes if minutes else None,
    )


def _added(earlier: EngineSamples, later: EngineSamples, name: str) -> Histogram | None:
    before, after = earlier.histogram(name), later.histogram(name)
    return after.since(before) if after and before else after


def _grown(earlier: EngineSamples, later: EngineSamples, *names: str) -> float:
    return max((later.value(*names) or 0.0) - (earlier.value(*names) or 0.0), 0.0)


def _seconds(pairs: Sequence[tuple[EngineSamples, EngineSamples]]) -> float | None:
    for earlier, later in pairs:
        if earlier.timestamp is not None and later.timestamp is not None:
            return later.timestamp - earlier.timestamp
    return None
