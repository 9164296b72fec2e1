"""The figures of one start, collected from its lines and combined over ranks as vLLM does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.readings.events import Event
from app.readings.observation import ArgValue, Observed

DRIVER: Final = "driver"


@dataclass(frozen=True, slots=True)
class Figure:
    """How one figure is read.

    kinds       the kinds of lines that print it, the most exact first; the first kind that occurs
                counts, so figures of different precision are never mixed
    combine     over ranks: `min` of what is available, `max` of what is used
    field       its name in those lines, where it differs
    many        one process may print it for several ranks or engines, so repeats are no corrections
    ranked      it belongs to a rank; else every line that prints it counts alike
    """

    kinds: tuple[str, ...]
    combine: Callable[[Iterable[float]], float]
    field: str | None = None
    many: bool = False
    ranked: bool = True


def _last(values: Iterable[float]) -> float:
    return list(values)[-1]


_TOKENS: Final = ("kv_cache_size_and_concurrency", "kv_cache_size")
_CONCURRENCY: Final = ("kv_cache_size_and_concurrency", "max_concurrency")
_REFUSALS: Final = ("free_memory_below_request", "free_memory_below_engine_budget")
_UTILIZATION: Final = (
    "memory_summary", "free_memory_below_request", "cudagraph_profiling_enabled",
    "cudagraph_profiling_disabled", "initial_free_memory", "v0_memory_budget", "v0_memory_results",
)  # fmt: skip

FIGURES: Final[Mapping[str, Figure]] = {
    "total_memory_gib": Figure(
        ("memory_summary", "worker_memory_snapshot", "v0_memory_budget", "v0_memory_results",
         *_REFUSALS, "out_of_memory"), min,
    ),
    "free_memory_gib": Figure(
        ("memory_summary", "initial_free_memory", "reserved_kv_cache", "worker_memory_snapshot",
         *_REFUSALS), min,
    ),
    "gpu_memory_utilization": Figure(_UTILIZATION, min),
    "requested_memory_gib": Figure(
        ("memory_summary", "initial_free_memory", "worker_requested_memory", "v0_memory_budget",
         "free_memory_below_request"), min,
    ),
    "checkpoint_gib": Figure(("checkpoint_size",), max),
    "weights_gib": Figure(
        ("model_loading", "memory_profile", "memory_summary", "v0_memory_profile"), max, many=True,
    ),
    "peak_activation_gib": Figure(
        ("memory_profile", "memory_summary", "v0_memory_profile"), max
    ),
    "peak_activation_printed_gib": Figure(("memory_summary",), max),
    "non_torch_gib": Figure(
        ("memory_profile", "memory_summary", "v0_memory_profile", "v0_memory_results"), max
    ),
    "consumed_gib": Figure(("memory_profile", "memory_summary"), max),
    "cudagraph_estimate_gib": Figure(("cudagraph_pool", "cudagraph_estimate"), max),
    "cudagraph_gib": Figure(("cudagraph_pool", "graph_capture", "memory_summary"), max),
    "available_kv_cache_gib": Figure(
        ("available_kv_cache_memory", "v0_memory_profile", "v0_memory_results",
         "auto_fit_max_model_len"), min, many=True,
    ),
    "reserved_kv_cache_gib": Figure(("reserved_kv_cache",), min),
    "free_after_profiling_gib": Figure(
        ("free_memory_after_profiling", "initial_free_memory"), min
    ),
    "num_gpu_blocks": Figure(
        ("num_gpu_blocks", "num_gpu_blocks_after_init"), min, many=True
    ),
    "num_gpu_blocks_override": Figure(("num_gpu_blocks_override",), _last),
    "num_cpu_blocks": Figure(("num_gpu_blocks",), min, many=True),
    "kv_cache_size_tokens": Figure(_TOKENS, min, many=True),
    "max_concurrency": Figure(_CONCURRENCY, min, many=True),
    "max_concurrency_len": Figure(_CONCURRENCY, _last),
    "context_parallel_factor": Figure(("context_parallel_factor",), _last),
    "suggested_kv_cache_memory_bytes": Figure(("memory_summary",), min),
    "max_kv_cache_memory_bytes": Figure(("memory_summary",), min),
    "equivalent_gpu_memory_utilization": Figure(("cudagraph_profiling_enabled",), min),
    "suggested_gpu_memory_utilization": Figure(
        ("cudagraph_profiling_enabled", "cudagraph_profiling_disabled"), max
    ),
    "kv_cache_block_size": Figure(("kv_cache_block_size",), max),
    "attention_block_size": Figure(("attention_block_size",), max),
    "mamba_page_padding_percent": Figure(("mamba_page_padding",), max),
    "padding_layers": Figure(("padding_layers",), max),
    "padding_waste_percent": Figure(("padding_layers",), max),
    "encoder_cache_tokens": Figure(("encoder_cache",), max),
    "load_seconds": Figure(("model_loading", "weights_loading"), max),
    "profile_seconds": Figure(("memory_profile",), max),
    "capture_seconds": Figure(("graph_capture",), max),
    "init_seconds": Figure(("engine_ready",), max),
    "peak_num_requests_running": Figure(
        ("statistics",), max, field="num_requests_running", ranked=False
    ),
    "peak_num_requests_waiting": Figure(
        ("statistics",), max, field="num_requests_waiting", ranked=False
    ),
    "peak_kv_cache_usage_percent": Figure(
        ("statistics", "iteration_statistics"), max, field="kv_cache_usage_percent", ranked=False
    ),
}  # fmt: skip


def observe(
    events: Sequence[Event], engine_args: Mapping[str, ArgValue], vllm_version: str | None
) -> Observed:
    """Combine the figures of one start."""
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    values: dict[str, Any] = {}
    per_rank: dict[str, Mapping[str, float]] = {}
    for name, figure in FIGURES.items():
        if not figure.ranked:
            values |= _overall(name, figure, by_kind)
            continue
        ranks = _ranks(name, figure, by_kind)
        if not ranks:
            continue
        values[name] = figure.combine(ranks.values())
        if len(ranks) > 1:
            per_rank[name] = ranks
    _derive(values, by_kind, engine_args, vllm_version)
    return Observed(**values, per_rank=per_rank)


def _ranks(name: str, figure: Figure, by_kind: Mapping[str, list[Event]]) -> dict[str, float]:
    """Each rank's value from the first kind of line that prints the figure."""
    field = figure.field or name
    for kind in figure.kinds:
        ranks: dict[str, float] = {}
        repeats: dict[str, int] = {}
        for event in by_kind.get(kind, ()):
            value = event.values.get(field)
            if not isinstance(value, int | float):
                continue
            label = event.prefix.process or DRIVER
            if figure.many and label in ranks:
                repeats[label] = repeats.get(label, 1) + 1
                label = f"{label} #{repeats[label]}"
            ranks[label] = value
        if ranks:
            return ranks
    return {}


def _overall(name: str, figure: Figure, by_kind: Mapping[str, list[Event]]) -> dict[str, float]:
    field = figure.field or name
    for kind in figure.kinds:
        found = [
            value
            for event in by_kind.get(kind, ())
            if isinstance(value := event.values.get(field), int | float)
        ]
        if found:
            return {name: figure.combine(found)}
    return {}


def _derive(
    values: dict[str, Any],
    by_kind: Mapping[str, list[Event]],
    engine_args: Mapping[str, ArgValue],
    vllm_version: str | None,
) -> None:
    """Add what follows from printed figures by vLLM's own arithmetic."""
    utilization = engine_args.get("gpu_memory_utilization", values.get("gpu_memory_utilization"))
    requested = values.get("requested_memory_gib")
    if "total_memory_gib" not in values and requested and isinstance(utilization, float):
        values["total_memory_gib"] = round(requested / utilization, 2) if utilization > 0 else None
    _derive_estimate(values, by_kind)
    _derive_activation(values, by_kind, engine_args, vllm_version)
    if "num_gpu_blocks" not in values and "num_gpu_blocks_override" in values:
        values["num_gpu_blocks"] = values["num_gpu_blocks_override"]
    _derive_reserved(values, by_kind)
    _derive_lengths(values, by_kind, engine_args)
    _derive_preemptions(values, by_kind)


def _derive_estimate(values: dict[str, Any], by_kind: Mapping[str, list[Event]]) -> None:
    """The graph estimate from the utilization that would do without it (also the V2 runner)."""
    total = values.get("total_memory_gib")
    shares = [
        utilization - equivalent
        for event in by_kind.get("cudagraph_profiling_enabled", ())
        if isinstance(utilization := event.values.get("gpu_memory_utilization"), float)
        and isinstance(equivalent := event.values.get("equivalent_gpu_memory_utilization"), float)
    ]
    if "cudagraph_estimate_gib" not in values and shares and total:
        values["cudagraph_estimate_gib"] = round(max(shares) * total, 2)


def _derive_activation(
    values: dict[str, Any],
    by_kind: Mapping[str, list[Event]],
    engine_args: Mapping[str, ArgValue],
    vllm_version: str | None,
) -> None:
    """Take activation and graph estimate apart where vLLM prints their sum."""
    if (vllm_version or "").startswith("0.18.") and "memory_profile" not in by_kind:
        printed = values.pop("peak_activation_gib", None)
        if printed is not None:
            values["peak_activation_printed_gib"] = printed
    headroom = [
        total - consumed
        for event in by_kind.get("memory_profile", ())
        if isinstance(total := event.values.get("total_non_kv_gib"), float)
        and isinstance(consumed := event.values.get("consumed_gib"), float)
    ]
    if headroom:
        values["peak_activation_gib"] = round(max(headroom), 2)
        return
    printed = values.get("peak_activation_printed_gib")
    estimate = values.get("cudagraph_estimate_gib")
    if estimate is None and engine_args.get("enforce_eager") is True:
        estimate = 0.0
    if printed is not None and estimate is not None and "peak_activation_gib" not in values:
        values["peak_activation_gib"] = round(max(printed - max(estimate, 0.0), 0.0), 2)


def _derive_reserved(values: dict[str, Any], by_kind: Mapping[str, list[Event]]) -> None:
    """Bytes given by a persisted startup plan are a reservation as well."""
    if "reserved_kv_cache_gib" in values:
        return
    reserved = [
        event.values["reserved_kv_cache_bytes"]
        for event in by_kind.get("startup_plan", ())
        if isinstance(event.values.get("reserved_kv_cache_bytes"), int)
    ]
    if reserved:
        values["reserved_kv_cache_gib"] = round(min(map(float, reserved)) / 2**30, 2)


def _derive_lengths(
    values: dict[str, Any], by_kind: Mapping[str, list[Event]], engine_args: Mapping[str, ArgValue]
) -> None:
    """The context length and batch that vLLM settled on."""
    sources = (
        ("auto_fit_max_model_len", "max_model_len"), ("engine_config", "max_model_len"),
        ("max_model_len", "max_model_len"), ("max_concurrency", "max_concurrency_len"),
        ("kv_cache_size_and_concurrency", "max_concurrency_len"),
        ("kv_cache_too_small", "max_model_len"),
    )  # fmt: skip
    for kind, field in sources:
        found = [event.values.get(field) for event in by_kind.get(kind, ())]
        lengths = [length for length in found if isinstance(length, int) and length > 0]
        if lengths:
            # A draft model announces its own length after the target's.
            values["max_model_len"] = min(lengths) if kind.startswith("auto") else lengths[0]
            break
    announced = [
        event.values["max_num_batched_tokens"]
        for event in by_kind.get("max_num_batched_tokens", ())
    ]
    batched = announced[-1] if announced else engine_args.get("max_num_batched_tokens")
    if isinstance(batched, int):
        values["max_num_batched_tokens"] = batched


def _derive_preemptions(values: dict[str, Any], by_kind: Mapping[str, list[Event]]) -> None:
    """V1 counts preemptions anew for every statistics line; V0 prints a running total."""
    counted = [event.values.get("num_preemptions") for event in by_kind.get("statistics", ())]
    total = sum(count for count in counted if isinstance(count, int))
    cumulative = [
        count
        for event in by_kind.get("preemption", ())
        if isinstance(count := event.values.get("cumulative_preemptions", 1), int)
    ]
    if counted or cumulative:
        values["num_preemptions"] = max([total, *cumulative])
