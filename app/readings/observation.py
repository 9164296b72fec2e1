"""What a start log says: starts, their figures, the lines that said so, and why one failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Value: TypeAlias = int | float | str
ArgValue: TypeAlias = "bool | int | float | str | list[ArgValue] | dict[str, ArgValue] | None"


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One recognised line.

    line       1-based, as in `log_text.split_lines`
    kind       a kind of `log_lines`, `failures` or `start_log`
    values     the line's own numbers and names as printed; GiB are 2**30, also where vLLM wrote GB
    last_line  greater than `line` where a terminal wrapped the record
    process    vLLM's process tag (`Worker_TP0_EP0`), empty where there is none
    start      index into `LogReading.starts`; None for a start that was left out
    """

    line: int
    kind: str
    values: Mapping[str, Value]
    last_line: int
    process: str = ""
    start: int | None = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a start failed.

    code     a failure kind; those that `core.reasons` knows carry the same code
    line     where the text stands
    stage    how far the start had come: `start`, `loading`, `profiling`, `capture`, `running`
    numbers  `needed_gib`, `available_gib`, `max_model_len`, `estimated_max_model_len`, ...
    """

    code: str
    line: int
    stage: Literal["start", "loading", "profiling", "capture", "running"]
    numbers: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Observed:
    """The measured figures of one start; None where the log does not print one.

    Where several ranks print a figure this is the binding one, combined as vLLM does: the minimum
    of memory that is available, blocks and tokens, the maximum of memory that is used. `per_rank`
    keeps every rank's value by process tag for figures that more than one rank printed.

    peak_activation_gib          without the CUDA graph estimate. vLLM 0.18.x and 0.27.1 onwards
                                 print the sum of both; None where it cannot be taken apart
    peak_activation_printed_gib  as printed by those releases, estimate included
    consumed_gib                 weights, non-torch memory and lasting buffers together (0.27.1 on)
    cudagraph_estimate_gib       what the profiler expected; may be negative
    cudagraph_gib                what the captured graphs took; may be negative
    available_kv_cache_gib       may be zero or negative before a failure
    reserved_kv_cache_gib        given with --kv-cache-memory-bytes; nothing was profiled then
    suggested_kv_cache_memory_bytes, max_kv_cache_memory_bytes
                                 vLLM's own advice: within the requested memory, or all of the card
    max_concurrency_len          the length that `max_concurrency` was printed for
    max_model_len                as vLLM resolved it: after auto-fit, as configured, as announced
    num_preemptions              summed over the statistics lines; V0: its cumulative count
    """

    total_memory_gib: float | None = None
    free_memory_gib: float | None = None
    gpu_memory_utilization: float | None = None
    requested_memory_gib: float | None = None
    checkpoint_gib: float | None = None
    weights_gib: float | None = None
    peak_activation_gib: float | None = None
    peak_activation_printed_gib: float | None = None
    non_torch_gib: float | None = None
    consumed_gib: float | None = None
    cudagraph_estimate_gib: float | None = None
    cudagraph_gib: float | None = None
    available_kv_cache_gib: float | None = None
    reserved_kv_cache_gib: float | None = None
    free_after_profiling_gib: float | None = None
    num_gpu_blocks: int | None = None
    num_gpu_blocks_override: int | None = None
    num_cpu_blocks: int | None = None
    kv_cache_size_tokens: int | None = None
    max_concurrency: float | None = None
    max_concurrency_len: int | None = None
    context_parallel_factor: int | None = None
    suggested_kv_cache_memory_bytes: int | None = None
    max_kv_cache_memory_bytes: int | None = None
    equivalent_gpu_memory_utilization: float | None = None
    suggested_gpu_memory_utilization: float | None = None
    kv_cache_block_size: int | None = None
    attention_block_size: int | None = None
    mamba_page_padding_percent: float | None = None
    padding_layers: int | None = None
    padding_waste_percent: float | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    encoder_cache_tokens: int | None = None
    load_seconds: float | None = None
    profile_seconds: float | None = None
    capture_seconds: float | None = None
    init_seconds: float | None = None
    peak_num_requests_running: int | None = None
    peak_num_requests_waiting: int | None = None
    peak_kv_cache_usage_percent: float | None = None
    num_preemptions: int | None = None
    per_rank: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """One start of one server.

    vllm_version           as printed; None where the log does not say, or names a source build
                           without a release (`0.1.dev…`)
    vllm_version_at_least, vllm_version_at_most
                           what the wording of the lines allows when the release is not printed
    engine                 V0 or V1 (the engine, not the model runner); None where nothing tells
    v2_model_runner        True where the log says so; False where it shows the older one
    gpu_names              names of cards as they stand in the text, in order, without repeats
    tensor_parallel_size…  as stated, else as the process tags show (then a lower bound)
    engine_args            only what the text states, under vLLM's names; values as vLLM takes them
    explicit_args          those of `engine_args` that a person set, not vLLM's resolved defaults
    arguments_shown        the log lists the arguments, so an argument that is absent is a default
    environment            VLLM_… variables from command lines
    service                compose service, pod or unit that printed the start
    first_line, last_line  of its recognised lines
    """

    vllm_version: str | None
    vllm_version_at_least: str | None
    vllm_version_at_most: str | None
    engine: Literal["V0", "V1"] | None
    v2_model_runner: bool | None
    model: str | None
    served_model_name: str | None
    architecture: str | None
    gpu_names: tuple[str, ...]
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    data_parallel_size: int | None
    decode_context_parallel_size: int | None
    enable_expert_parallel: bool | None
    engine_args: Mapping[str, ArgValue]
    explicit_args: frozenset[str]
    arguments_shown: bool
    environment: Mapping[str, str]
    service: str
    first_line: int
    last_line: int
    observed: Observed
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class LogReading:
    """Everything read from one pasted text: its starts, and every recognised line in order.

    starts_left_out  how many starts before the first of `starts` there are, when a server that
                     restarts without end fills the paste
    complete         False where reading stopped because the text holds more lines than any log
    """

    starts: tuple[Observation, ...]
    lines: tuple[ReadLine, ...]
    starts_left_out: int = 0
    complete: bool = True
