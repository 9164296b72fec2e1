"""Texts with which a start fails, and the numbers in them.

Codes that `app.core.reasons` knows are the same there. The order is the order of precedence: of
several texts in one start, the first code in this table is the cause and the rest follow from it.
Wordings and release bounds: the literals of vLLM's wheels 0.6.6 to 0.33.0, and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.readings.line_kind import LineKind, form, line_kind
from app.readings.observation import Value

FAILURE_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "no_memory_for_kv_cache",
        "No available memory for the cache blocks",
        form(
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
            "when "
            "initializing the engine (this flag also controls CPU memory",
            since="0.22.1",
        ),
        form(
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
            "when "
            "initializing the engine. See ",
            since="0.13.0",
            until="0.21.0",
        ),
        form("No available memory for the cache blocks"),
    ),
    line_kind(
        "kv_cache_too_small",
        ("To serve at least one request with the ", "max seq len ("),
        form(
            "To serve at least one request with the {possessive} max seq len ({max_model_len}), "
            "[(]{needed_gib} {unit} KV cache is needed, which is larger than the available KV "
            "cache "
            "memory ({available_gib} {free_unit})[.][ Based on the available memory,[ ]the "
            "estimated "
            "maximum model length is {estimated_max_model_len}.]",
            since="0.7.3",
        ),
        form(
            "max seq len ({max_model_len}) is larger than the maximum number of tokens that can be "
            "stored in KV cache ({kv_cache_size_tokens})",
            until="0.10.2",
        ),
    ),
    line_kind(
        "kv_cache_too_small",
        " KV cache is needed, which is larger than the available",
        form(
            "({needed_gib} {unit} KV cache is needed, which is larger than the available KV cache "
            "memory ({available_gib} {free_unit})[.][ Based on the available memory,[ ]the "
            "estimated "
            "maximum model length is {estimated_max_model_len}.]",
            since="0.7.3",
        ),
        lead="(",
    ),
    line_kind(
        "free_memory_below_request",
        "Free memory on device",
        form(
            "Free memory on device {device} ({free_memory_gib}/{total_memory_gib} GiB) on "
            "startup is "
            "less than desired GPU memory utilization ({gpu_memory_utilization}, "
            "{requested_memory_gib} GiB)",
            since="0.14.1",
        ),
        form(
            "Free memory on device ({free_memory_gib}/{total_memory_gib} GiB) on startup is less "
            "than desired GPU memory utilization ({gpu_memory_utilization}, "
            "{requested_memory_gib} GiB)",
            since="0.9.2",
            until="0.13.0",
        ),
    ),
    line_kind(
        "free_memory_below_engine_budget",
        "Free memory on device",
        form(
            "Free memory on device[ {device}] ({free_memory_gib}/{total_memory_gib} GiB) on "
            "startup "
            "is less than the engine's budget after excluding external process's weights "
            "({gpu_memory_utilization}, {engine_budget_gib} GiB)",
            since="0.32.0",
        ),
    ),
    line_kind(
        "external_weights_exceed_budget",
        "Externally held weights ",
        form(
            "Externally held weights ...exceed the desired GPU memory utilization", since="0.32.0"
        ),
    ),
    line_kind(
        "memory_changed_during_profiling",
        "Error in memory profiling. Initial free memory ",
        form(
            "Error in memory profiling. Initial free memory {free_memory_gib} GiB, current free "
            "memory {current_free_gib} GiB",
            since="0.9.2",
        ),
        form(
            "Error in memory profiling. Initial free memory {free_memory_bytes}, current free "
            "memory {current_free_bytes}",
            until="0.9.0",
        ),
    ),
    line_kind(
        "auto_fit_failed",
        "Cannot auto-fit max_model_len: ",
        form("Cannot auto-fit max_model_len: not enough GPU memory", since="0.14.1"),
    ),
    line_kind(
        "mamba_blocks_below_max_num_seqs",
        " exceeds available Mamba cache blocks",
        form("max_num_seqs ({max_num_seqs}) exceeds available Mamba cache blocks ({mamba_blocks})"),
        lead="max_num_seqs (",
    ),
    line_kind(
        "context_too_long",
        "User-specified max_model_len (",
        form(
            "User-specified max_model_len ({max_model_len}) is greater than the derived "
            "max_model_len ({word}={derived_max_model_len}[.0] or "
        ),
        form(
            "User-specified max_model_len ({max_model_len}) is greater than the derived "
            "max_model_len ({word}={derived_max_model_len}[.0] in "
        ),
    ),
    line_kind(
        "heads_not_divisible",
        "Total number of attention heads (",
        form(
            "Total number of attention heads ({num_attention_heads}) must be divisible by tensor "
            "parallel size ({tensor_parallel_size})"
        ),
    ),
    line_kind(
        "sampler_warmup_out_of_memory",
        "CUDA out of memory occurred when warming up sampler",
        form(
            "CUDA out of memory occurred when warming up sampler with {dummy_requests} dummy "
            "requests",
            since="0.8.0",
        ),
    ),
    line_kind(
        "pooler_warmup_out_of_memory",
        "CUDA out of memory occurred when warming up pooler",
        form(
            "CUDA out of memory occurred when warming up pooler[ (task={word})] with "
            "{dummy_requests} "
            "dummy requests",
            since="0.9.2",
        ),
    ),
    line_kind(
        "weights_do_not_fit",
        "Failed to load model - not enough GPU memory",
        form("Failed to load model - not enough GPU memory"),
    ),
    line_kind(
        "out_of_memory",
        "Tried to allocate ",
        form(
            "Tried to allocate {tried_amount} {unit}. GPU[ {gpu_index}] has a total capacity of "
            "{total_memory_gib} GiB of which {free_amount} {free_unit} is free"
            "[...this process has {process_gib} GiB memory in use]"
        ),
        form("Tried to allocate {tried_amount} {unit}"),
    ),
    line_kind("cuda_error", "CUDA error: ", form("CUDA error: {detail}")),
    line_kind(
        "engine_core_failed",
        "Engine core initialization failed",
        form("Engine core initialization failed"),
    ),
    line_kind("killed", "Killed", form("Killed"), alone=True),
)
FAILURE_CODES: Final = tuple(dict.fromkeys(each.kind for each in FAILURE_LINES))

# "GB" in the 0.7.3 and 0.8.0 texts is 2**30 as well.
_GIB_PER_UNIT: Final = {"KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0}
_NOT_NUMBERS: Final = (
    "unit",
    "free_unit",
    "possessive",
    "word",
    "device",
    "tried_amount",
    "free_amount",
)


def failure_numbers(values: Mapping[str, Value]) -> dict[str, Value]:
    """The numbers of a failure's line, amounts of any unit as `*_gib`."""
    numbers = {name: value for name, value in values.items() if name not in _NOT_NUMBERS}
    for amount, unit in (("tried", "unit"), ("free", "free_unit")):
        value = values.get(f"{amount}_amount")
        if isinstance(value, float):
            numbers[f"{amount}_gib"] = value * _GIB_PER_UNIT.get(str(values[unit]), 1.0)
    return numbers
