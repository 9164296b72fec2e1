"""Pasted start logs of vLLM 0.6 to 0.33, turned into observations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from app.readings.division import divide
from app.readings.events import COMMAND, MAX_EVENTS, Event, read_events
from app.readings.failures import FAILURE_CODES, failure_numbers
from app.readings.figures import observe
from app.readings.log_prefix import parallel_indices
from app.readings.log_text import read_text
from app.readings.observation import ArgValue, Failure, LogReading, Observation, ReadLine

MAX_STARTS: Final = 100

_PRECEDENCE: Final = {code: rank for rank, code in enumerate(FAILURE_CODES)}
# Texts that may stand in the log of a server that nevertheless came up.
_UNCERTAIN: Final = frozenset({"out_of_memory", "cuda_error", "killed"})
_READY: Final = frozenset({"engine_ready", "statistics"})
_CACHED: Final = frozenset({"kv_cache_size", "kv_cache_size_and_concurrency", "num_gpu_blocks"})
_V1_KINDS: Final = frozenset({
    "kv_cache_size", "kv_cache_size_and_concurrency", "available_kv_cache_memory", "cudagraph_pool",
    "initial_free_memory", "v2_model_runner", "num_gpu_blocks_after_init",
})  # fmt: skip
_V0_KINDS: Final = frozenset({
    "v0_memory_results", "v0_memory_budget", "v0_memory_profile", "preemption",
})  # fmt: skip
_V1_FILES: Final = frozenset(
    {"core.py", "kv_cache_utils.py", "gpu_worker.py", "gpu_model_runner.py"}
)
_V0_FILES: Final = frozenset({
    "llm_engine.py", "worker.py", "executor_base.py", "gpu_executor.py", "metrics.py",
    "distributed_gpu_executor.py",
})  # fmt: skip
_V1_RUNNER_KINDS: Final = frozenset({"cudagraph_profiling", "cudagraph_estimate"})
_CACHED_MODEL = re.compile(r"models--([\w.\-]{1,100}?)--([\w.\-]{1,200})")
_SOURCE_BUILD: Final = "0.1.dev"
_PARALLEL: Final = {
    "tensor_parallel_size": "TP",
    "pipeline_parallel_size": "PP",
    "data_parallel_size": "DP",
    "decode_context_parallel_size": "DCP",
}


def read_start_log(text: str) -> LogReading:
    """Read every start in a pasted text.

    Never raises; time is linear in the length of the text. A text without a single recognised line
    gives no starts; of more than MAX_STARTS the last ones are kept. Lines are numbered as
    `log_text.split_lines` counts them.
    """
    events = read_events(read_text(text))
    groups = divide(events)
    left_out = max(len(groups) - MAX_STARTS, 0)
    starts = tuple(_observation(group) for group in groups[left_out:])
    lines = [
        _line(event, index - left_out if index >= left_out else None)
        for index, group in enumerate(groups)
        for event in group
    ]
    lines.sort(key=lambda each: each.line)
    return LogReading(starts, tuple(lines), left_out, complete=len(events) < MAX_EVENTS)


def _line(event: Event, start: int | None) -> ReadLine:
    return ReadLine(
        line=event.line,
        kind=event.kind,
        values=event.values,
        last_line=event.last_line,
        process=event.prefix.process,
        start=start,
    )


def _observation(events: Sequence[Event]) -> Observation:
    explicit, engine_args = _arguments(events)
    version = _version(events)
    at_least, at_most = (None, None) if version else _version_range(events)
    processes = {event.prefix.process for event in events}
    indices = [parallel_indices(process) for process in processes]
    sizes = {name: _parallel_size(name, engine_args, indices) for name in _PARALLEL}
    return Observation(
        vllm_version=version,
        vllm_version_at_least=at_least,
        vllm_version_at_most=at_most,
        engine=_engine(events),
        v2_model_runner=_v2_model_runner(events),
        model=_model(engine_args, events),
        served_model_name=_text(engine_args.get("served_model_name")),
        architecture=_first(events, "architecture", "architecture"),
        gpu_names=_gpu_names(events),
        tensor_parallel_size=sizes["tensor_parallel_size"],
        pipeline_parallel_size=sizes["pipeline_parallel_size"],
        data_parallel_size=sizes["data_parallel_size"],
        decode_context_parallel_size=sizes["decode_context_parallel_size"],
        enable_expert_parallel=_expert_parallel(engine_args, indices),
        engine_args=engine_args,
        explicit_args=frozenset(explicit),
        arguments_shown=any(event.kind in {"non_default_args", "server_args"} for event in events),
        environment={key: value for event in events for key, value in event.environment.items()},
        service=next((event.service for event in events if event.service), ""),
        first_line=min(event.line for event in events),
        last_line=max(event.last_line for event in events),
        observed=observe(events, engine_args, version),
        failure=_failure(events),
    )


def _arguments(events: Iterable[Event]) -> tuple[dict[str, ArgValue], dict[str, ArgValue]]:
    """What a person set, and everything that is stated.

    The log's own listing beats a command line beside it. What vLLM resolved fills in the rest:
    a length given as `auto` stays so, because that is what was asked for.
    """
    by_kind: dict[str, dict[str, ArgValue]] = {}
    for event in events:
        if event.engine_args:
            by_kind.setdefault(event.kind, {}).update(event.engine_args)
    explicit = {**by_kind.get(COMMAND, {}), **by_kind.get("non_default_args", {})}
    resolved = {**by_kind.get("server_args", {}), **by_kind.get("engine_config", {})}
    return explicit, {**resolved, **explicit}


def _version(events: Sequence[Event]) -> str | None:
    printed = [event.vllm_version for event in events if event.kind == "engine_config"]
    announced = [
        _text(event.values.get("vllm_version")) for event in events if event.kind == "vllm_version"
    ]
    image = [event.vllm_version for event in events if event.kind == COMMAND]
    for version in (*printed, *announced, *image):
        if version and not version.startswith(_SOURCE_BUILD):
            return version.rstrip(".+")
    return None


def _version_range(events: Iterable[Event]) -> tuple[str | None, str | None]:
    """Releases that print all of these wordings; (None, None) where no release does."""
    forms = {event.form for event in events if event.form is not None}
    at_least = max((form.since for form in forms if form.since), key=_numbers, default=None)
    at_most = min((form.until for form in forms if form.until), key=_numbers, default=None)
    if at_least and at_most and _numbers(at_least) > _numbers(at_most):
        return None, None
    return at_least, at_most


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _engine(events: Sequence[Event]) -> Literal["V0", "V1"] | None:
    stated = {event.engine for event in events}
    kinds = {event.kind for event in events}
    files = {event.prefix.file for event in events}
    names = {event.prefix.process.partition("_")[0] for event in events}
    if "V1" in stated or kinds & _V1_KINDS or files & _V1_FILES or names & {"EngineCore", "Worker"}:
        return "V1"
    if "V0" in stated or kinds & _V0_KINDS or files & _V0_FILES:
        return "V0"
    if any("num_cpu_blocks" in event.values for event in events):
        return "V0"
    return "V1" if "num_gpu_blocks" in kinds else None


def _v2_model_runner(events: Iterable[Event]) -> bool | None:
    kinds = {event.kind for event in events}
    files = {event.prefix.file for event in events}
    if "v2_model_runner" in kinds:
        return True
    if kinds & _V1_RUNNER_KINDS or "gpu_model_runner.py" in files:
        return False
    return None


def _model(engine_args: Mapping[str, ArgValue], events: Iterable[Event]) -> str | None:
    stated = _text(engine_args.get("model")) or _first(events, "model_name", "model")
    if stated is None:
        return None
    cached = _CACHED_MODEL.search(stated)
    return f"{cached[1]}/{cached[2]}" if cached else stated


def _first(events: Iterable[Event], kind: str, field: str) -> str | None:
    return next((_text(event.values.get(field)) for event in events if event.kind == kind), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _gpu_names(events: Iterable[Event]) -> tuple[str, ...]:
    names = (
        str(event.values["gpu_name"]).replace("_", " ").rstrip(" .")
        for event in events
        if event.kind == "gpu_name"
    )
    return tuple(dict.fromkeys(names))


def _parallel_size(
    name: str, engine_args: Mapping[str, ArgValue], indices: Iterable[Mapping[str, int]]
) -> int | None:
    stated = engine_args.get(name)
    if isinstance(stated, int):
        return stated
    letters = _PARALLEL[name]
    return max((each[letters] + 1 for each in indices if letters in each), default=None)


def _expert_parallel(
    engine_args: Mapping[str, ArgValue], indices: Iterable[Mapping[str, int]]
) -> bool | None:
    stated = engine_args.get("enable_expert_parallel")
    if isinstance(stated, bool):
        return stated
    return True if any("EP" in each for each in indices) else None


def _failure(events: Sequence[Event]) -> Failure | None:
    """The cause among the failure texts: the most telling one, and of those the first."""
    ready = max((index for index, event in enumerate(events) if event.kind in _READY), default=-1)
    candidates = [
        (_PRECEDENCE[event.kind], index)
        for index, event in enumerate(events)
        if event.kind in _PRECEDENCE and not (event.kind in _UNCERTAIN and index < ready)
    ]
    if not candidates:
        return None
    code_rank, index = min(candidates)
    event = events[index]
    same = [events[at].values for rank, at in candidates if rank == code_rank]
    fullest = max(same, key=len)
    return Failure(
        code=event.kind,
        line=event.line,
        stage=_stage(events[:index]),
        numbers=failure_numbers(fullest),
    )


def _stage(
    before: Sequence[Event],
) -> Literal["start", "loading", "profiling", "capture", "running"]:
    kinds = {event.kind for event in before}
    if kinds & _READY:
        return "running"
    if kinds & _CACHED:
        return "capture"
    if "model_loading" in kinds:
        return "profiling"
    return "loading" if "engine_config" in kinds else "start"
