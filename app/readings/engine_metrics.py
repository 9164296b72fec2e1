"""One engine's figures on a metrics page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.readings.histogram import Histogram
from app.readings.metrics_samples import EngineSamples

PROMPT_TOKENS: Final = "vllm:request_prompt_tokens"
GENERATION_TOKENS: Final = "vllm:request_generation_tokens"
PREEMPTIONS: Final = "vllm:num_preemptions_total"
CACHE_QUERIES: Final = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
CACHE_HITS: Final = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
_QUANTILE: Final = 0.95
_GREATEST: Final = 1e15


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One engine, as its last page shows it; None where the page does not say.

    kv_cache_usage        0 to 1
    mean_*, p95_*         over all finished requests since the server started. A request's p95 is
                          the sum of those of prompt and answer, capped at the context length: an
                          upper estimate, because vLLM keeps no histogram of the sum
    kv_cache_size_tokens  exact from 0.24.0; before that blocks times block size, right for models
                          of one KV cache group only: `kv_cache_size_exact` tells which
    max_model_len         size over concurrency, both exact
    tokens_per_running_request
                          cache in use over running requests, at this moment
    requests_of_mean_length, requests_of_p95_length
                          how many such requests the cache holds at once
    """

    engine: str
    model: str | None
    kv_cache_usage: float | None
    num_requests_running: int | None
    num_requests_waiting: int | None
    num_requests_waiting_by_reason: Mapping[str, int]
    num_requests_swapped: int | None
    num_preemptions: int | None
    num_requests_finished: int | None
    mean_prompt_tokens: float | None
    mean_generation_tokens: float | None
    mean_request_tokens: float | None
    p95_prompt_tokens: float | None
    p95_generation_tokens: float | None
    p95_request_tokens: float | None
    prefix_cache_hit_rate: float | None
    kv_cache_size_tokens: int | None
    kv_cache_size_exact: bool
    max_concurrency: float | None
    max_model_len: int | None
    num_gpu_blocks: int | None
    num_gpu_blocks_override: int | None
    block_size: int | None
    cache_dtype: str | None
    gpu_memory_utilization: float | None
    enable_prefix_caching: bool | None
    kv_cache_memory_bytes: int | None
    tokens_per_running_request: float | None
    requests_of_mean_length: float | None
    requests_of_p95_length: float | None


def engine_metrics(samples: EngineSamples) -> EngineMetrics:
    """Read one engine's samples."""
    cache = _cache_figures(samples.config())
    lengths = _length_figures(samples, cache["max_model_len"])
    size = cache["kv_cache_size_tokens"]
    mean, p95 = lengths["mean_request_tokens"], lengths["p95_request_tokens"]
    usage = samples.value("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    running = samples.value("vllm:num_requests_running")
    return EngineMetrics(
        engine=samples.engine,
        model=samples.model,
        kv_cache_usage=usage,
        num_requests_running=_count(running),
        num_requests_waiting=_count(samples.value("vllm:num_requests_waiting")),
        num_requests_waiting_by_reason={
            reason: int(value)
            for reason, value in samples.labelled(
                "vllm:num_requests_waiting_by_reason", "reason"
            ).items()
        },
        num_requests_swapped=_count(samples.value("vllm:num_requests_swapped")),
        num_preemptions=_count(samples.value(PREEMPTIONS)),
        prefix_cache_hit_rate=_hit_rate(samples),
        tokens_per_running_request=(
            usage * size / running if usage is not None and size and running else None
        ),
        requests_of_mean_length=size / mean if size and mean else None,
        requests_of_p95_length=size / p95 if size and p95 else None,
        **cache,
        **lengths,
    )


def _cache_figures(config: Mapping[str, str]) -> dict[str, Any]:
    """What `cache_config_info` tells; size and length follow from it."""
    blocks, block_size = _integer(config, "num_gpu_blocks"), _integer(config, "block_size")
    exact = _integer(config, "kv_cache_size_tokens")
    concurrency = _number(config, "kv_cache_max_concurrency")
    from_blocks = blocks * block_size if blocks and block_size else None
    return {
        "kv_cache_size_tokens": from_blocks if exact is None else exact,
        "kv_cache_size_exact": exact is not None,
        "max_concurrency": concurrency,
        "max_model_len": round(exact / concurrency) if exact and concurrency else None,
        "num_gpu_blocks": blocks,
        "num_gpu_blocks_override": _integer(config, "num_gpu_blocks_override"),
        "block_size": block_size,
        "cache_dtype": config.get("cache_dtype"),
        "gpu_memory_utilization": _number(config, "gpu_memory_utilization"),
        "enable_prefix_caching": {"True": True, "False": False}.get(
            config.get("enable_prefix_caching", "")
        ),
        "kv_cache_memory_bytes": _integer(config, "kv_cache_memory_bytes"),
    }


def _length_figures(samples: EngineSamples, max_model_len: int | None) -> dict[str, Any]:
    """Means and quantiles of the finished requests, none above the context length."""
    prompt, generation = samples.histogram(PROMPT_TOKENS), samples.histogram(GENERATION_TOKENS)
    p95 = _sum(_p95(prompt, max_model_len), _p95(generation, max_model_len))
    if p95 is not None and max_model_len is not None:
        p95 = min(p95, float(max_model_len))
    finished = prompt.count if prompt else samples.value("vllm:request_success_total")
    return {
        "num_requests_finished": _count(finished),
        "mean_prompt_tokens": _mean(prompt),
        "mean_generation_tokens": _mean(generation),
        "mean_request_tokens": _sum(_mean(prompt), _mean(generation)),
        "p95_prompt_tokens": _p95(prompt, max_model_len),
        "p95_generation_tokens": _p95(generation, max_model_len),
        "p95_request_tokens": p95,
    }


def _hit_rate(samples: EngineSamples) -> float | None:
    queries, hits = samples.value(*CACHE_QUERIES), samples.value(*CACHE_HITS)
    if queries and hits is not None:
        return hits / queries
    rate = samples.value("vllm:gpu_prefix_cache_hit_rate")
    # V0 prints -1 where prefix caching is off.
    return rate if rate is not None and rate >= 0 else None


def _mean(histogram: Histogram | None) -> float | None:
    return histogram.mean() if histogram else None


def _p95(histogram: Histogram | None, cap: int | None) -> float | None:
    return histogram.quantile(_QUANTILE, cap) if histogram else None


def _sum(one: float | None, other: float | None) -> float | None:
    return one + other if one is not None and other is not None else None


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _number(config: Mapping[str, str], name: str) -> float | None:
    """A label as a number; None for `None`, which vLLM writes for what is not set."""
    try:
        value = float(config[name])
    except (KeyError, ValueError):
        return None
    return value if 0 <= value < _GREATEST else None


def _integer(config: Mapping[str, str], name: str) -> int | None:
    value = _number(config, name)
    return None if value is None else int(value)
