"""What holds a running server back: its KV cache, its batch limit, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.readings.engine_metrics import EngineMetrics
from app.readings.metrics_change import MetricsChange

FULL: Final = 0.9

VerdictCode = Literal["cache_bound", "batch_bound", "room_to_spare", "idle"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds the server back.

    cache_bound    the KV cache is full (usage at least FULL), or requests lose their place in it
    batch_bound    requests wait, or all `max_num_seqs` places are taken, while the cache has room
    room_to_spare  neither
    idle           nothing runs or waits, and nothing finished between the pages

    first_limit is the limit that the real mix meets first; None where it cannot be told.
    """

    code: VerdictCode
    numbers: Mapping[str, float]
    first_limit: Literal["kv_cache", "max_num_seqs"] | None


def judge(
    engines: Sequence[EngineMetrics], change: MetricsChange | None, max_num_seqs: int | None
) -> Verdict | None:
    """Judge all engines of a page together; None where no engine tells its cache usage.

    The fullest cache counts; requests and capacities are summed. `max_num_seqs` is per engine.
    """
    usages = [each.kv_cache_usage for each in engines if each.kv_cache_usage is not None]
    if not usages:
        return None
    usage = max(usages)
    running = sum(each.num_requests_running or 0 for each in engines)
    waiting = sum(each.num_requests_waiting or 0 for each in engines)
    swapped = sum(each.num_requests_swapped or 0 for each in engines)
    places = max_num_seqs * len(engines) if max_num_seqs else None
    numbers = _numbers(engines, change, places)
    numbers |= {
        "kv_cache_usage": usage,
        "num_requests_running": running,
        "num_requests_waiting": waiting,
    }
    preempted = change.num_preemptions if change else 0
    finished = change.num_requests_finished if change else 0
    code: VerdictCode
    if not running and not waiting and not finished and not preempted:
        code = "idle"
    elif usage >= FULL or preempted or swapped:
        code = "cache_bound"
    elif waiting or (places is not None and running >= places):
        code = "batch_bound"
    else:
        code = "room_to_spare"
    return Verdict(code, numbers, _first_limit(numbers))


def _numbers(
    engines: Sequence[EngineMetrics], change: MetricsChange | None, places: int | None
) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name in (
        "kv_cache_size_tokens", "requests_of_mean_length", "requests_of_p95_length",
        "max_concurrency", "num_preemptions",
    ):  # fmt: skip
        stated = [value for each in engines if (value := getattr(each, name)) is not None]
        if stated:
            numbers[name] = sum(stated)
    finished = [each for each in engines if each.mean_request_tokens and each.num_requests_finished]
    requests = sum(each.num_requests_finished or 0 for each in finished)
    if requests:
        tokens = sum(
            (each.mean_request_tokens or 0) * (each.num_requests_finished or 0) for each in finished
        )
        numbers["mean_request_tokens"] = tokens / requests
    lengths = [each.p95_request_tokens for each in engines if each.p95_request_tokens]
    if lengths:
        numbers["p95_request_tokens"] = max(lengths)
    if places is not None:
        numbers["max_num_seqs"] = places
    if change is not None:
        numbers["preemptions_between_pages"] = change.num_preemptions
        numbers["requests_finished_between_pages"] = change.num_requests_finished
    return numbers


def _first_limit(numbers: Mapping[str, float]) -> Literal["kv_cache", "max_num_seqs"] | None:
    requests, places = numbers.get("requests_of_mean_length"), numbers.get("max_num_seqs")
    if requests is None or places is None:
        return None
    return "kv_cache" if requests < places else "max_num_seqs"
