"""Lines about memory: weights, the profile, and what it leaves for the KV cache.

Every GiB is 2**30 bytes, also in the two wordings where vLLM wrote GB. Wordings and release bounds:
the literals of vLLM's wheels 0.6.6 to 0.33.0; before that, public logs.
"""

from __future__ import annotations

from typing import Final

from app.readings.line_kind import LineKind, form, line_kind

WEIGHT_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "checkpoint_size",
        "Checkpoint size: ",
        form("Checkpoint size: {checkpoint_gib} GiB[. Available RAM: {available_ram_gib} GiB]"),
    ),
    line_kind(
        "model_loading",
        ("Loading model weights took ", "Model loading took "),
        form(
            "Model loading took {weights_gib} GiB memory and {load_seconds} seconds", since="0.11.1"
        ),
        form(
            "Model loading took {weights_gib} GiB and {load_seconds} seconds",
            since="0.8.1",
            until="0.27.1",
        ),
        form(
            "Model loading took {weights_gib} GB and {load_seconds} seconds",
            since="0.8.0",
            until="0.8.4",
        ),
        form("Model loading took {weights_gib} GiB"),
        form("Loading model weights took {weights_gib} GB", until="0.8.0"),
        form("Loading model weights took {weights_gib} GiB", since="0.8.1", until="0.9.2"),
    ),
    line_kind(
        "weights_loading",
        "Loading weights took ",
        form("Loading weights took {load_seconds} seconds"),
    ),
    line_kind(
        "external_weights",
        "Weights are held outside this process",
        form(
            "Weights are held outside this process: of the {budget_gib} GiB utilization budget, "
            "{external_weights_gib} GiB is externally held and {engine_budget_gib} GiB remains",
            since="0.32.0",
        ),
    ),
)

PROFILE_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "v0_memory_results",
        "Memory profiling results: ",
        form(
            "Memory profiling results: total_gpu_memory={total_memory_gib}GiB "
            "initial_memory_usage={initial_usage_gib}GiB peak_torch_memory={peak_torch_gib}GiB "
            "memory_usage_post_profile={usage_after_gib}Gi[B][b] "
            "non_torch_memory={non_torch_gib}GiB kv_cache_size={available_kv_cache_gib}GiB "
            "gpu_memory_utilization={gpu_memory_utilization}",
            until="0.6.5",
        ),
    ),
    line_kind(
        "memory_profile",
        "Memory profiling takes ",
        form(
            "Memory profiling takes {profile_seconds} seconds. Total non KV cache memory: "
            "{total_non_kv_gib}GiB; torch peak memory increase: {torch_peak_increase_gib}GiB; "
            "total consumed (from mem_get_info): {consumed_gib}GiB; weights memory: "
            "{weights_gib}GiB",
            since="0.27.1",
        ),
        form(
            "Memory profiling takes {profile_seconds} seconds. Total non KV cache memory: "
            "{total_non_kv_gib}GiB; torch peak memory increase: {peak_activation_gib}GiB; "
            "non-torch forward increase memory: {non_torch_gib}GiB; weights memory: "
            "{weights_gib}GiB",
            since="0.9.2",
            until="0.26.0",
        ),
        form("Memory profiling takes {profile_seconds} seconds", until="0.10.2"),
    ),
    line_kind(
        "v0_memory_budget",
        ("the current vLLM instance can use ", "total_gpu_memory  "),
        form(
            "the current vLLM instance can use total_gpu_memory ({total_memory_gib}GiB) x "
            "gpu_memory_utilization ({gpu_memory_utilization}) = {requested_memory_gib}GiB",
            until="0.10.2",
        ),
        form("the current vLLM instance can use {requested_memory_gib}GiB", until="0.6.6"),
        form("total_gpu_memory {total_memory_gib}GiB", until="0.6.6"),
    ),
    line_kind(
        "v0_memory_profile",
        ("model weights take ", "available_kv_cache_memory  "),
        form(
            "model weights take {weights_gib}GiB; non_torch_memory takes {non_torch_gib}GiB; "
            "PyTorch activation peak memory takes {peak_activation_gib}GiB; the rest of the "
            "memory reserved for KV Cache is {available_kv_cache_gib}GiB",
            until="0.10.2",
        ),
        form("available_kv_cache_memory {available_kv_cache_gib}GiB", until="0.6.6"),
    ),
    line_kind(
        "initial_free_memory",
        "Initial free memory: ",
        form(
            "Initial free memory: {free_memory_gib} GiB; Requested memory: "
            "{gpu_memory_utilization} (util), {requested_memory_gib} GiB",
            since="0.10.1",
        ),
        form(
            "Initial free memory: {free_memory_gib} GiB, free memory: {free_after_profiling_gib} "
            "GiB, requested GPU memory: {requested_memory_gib} GiB",
            since="0.9.2",
            until="0.10.0",
        ),
    ),
    line_kind(
        "free_memory_after_profiling",
        "Free memory after profiling: ",
        form(
            "Free memory after profiling: {free_after_profiling_gib} GiB (total), "
            "{free_within_requested_gib} GiB (within requested)",
            since="0.10.1",
        ),
    ),
    line_kind(
        "worker_requested_memory",
        "worker requested memory: ",
        form("worker requested memory: {requested_memory_gib}GiB", since="0.14.0"),
    ),
    line_kind(
        "worker_memory_snapshot",
        "worker init memory snapshot: ",
        form(
            "worker init memory snapshot: ...free_memory={free_memory_gib}GiB, "
            "total_memory={total_memory_gib}GiB",
            since="0.14.0",
        ),
        form(
            "worker init memory snapshot: ...free={free_memory_gib}GiB, "
            "total={total_memory_gib}GiB",
            since="0.14.0",
        ),
    ),
    line_kind(
        "available_kv_cache_memory",
        "Available KV cache memory",
        form("Available KV cache memory~{available_kv_cache_gib} GiB", since="0.9.2"),
    ),
    line_kind(
        "free_memory_grew",
        "Free memory grew by ",
        form(
            "Free memory grew by {grown_gib} GiB during profiling[ (initial {free_memory_gib} GiB, "
            "current {free_after_profiling_gib} GiB)][. Sizing the KV cache from the "
            "{torch_reserved_gib} GiB torch reserved]",
            since="0.29.0",
        ),
    ),
    line_kind(
        "allocator_cache_cleared",
        " of cached CUDA allocator memory",
        form("Cleared {cleared_gib} GiB of cached CUDA allocator memory"),
        lead="Cleared ",
    ),
    line_kind(
        "reserved_kv_cache",
        "Initial free memory ",
        form(
            "Initial free memory {free_memory_gib} GiB, reserved {reserved_kv_cache_gib}[ ]GiB "
            "memory for KV Cache",
            since="0.10.2",
        ),
    ),
    line_kind(
        "startup_plan",
        ("Applying persisted startup plan", "Saved startup plan to "),
        form(
            "Applying persisted startup plan[ (fingerprint {fingerprint})]: "
            "kv_cache_memory_bytes={reserved_kv_cache_bytes}",
            since="0.26.0",
        ),
        form("Saved startup plan to ", since="0.26.0"),
    ),
    line_kind(
        "sleep_mode",
        "Sleep mode freed ",
        form(
            "Sleep mode freed {freed_gib} GiB memory, {still_used_gib} GiB memory is still in use",
            since="0.8.0",
        ),
    ),
)
