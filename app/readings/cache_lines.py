"""Lines about the KV cache itself: blocks, tokens, concurrency, block sizes, padding.

Wordings and release bounds: the literals of vLLM's wheels 0.6.6 to 0.33.0.
"""

from __future__ import annotations

from typing import Final

from app.readings.line_kind import DEVICE, LineKind, form, line_kind

CACHE_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "kv_cache_size_and_concurrency",
        " KV cache size",
        form(
            "{device} KV cache size: {kv_cache_size_tokens} tokens, Maximum concurrency for "
            "{max_concurrency_len} tokens per request: {max_concurrency}x",
            since="0.28.0",
        ),
        lead=DEVICE,
    ),
    line_kind(
        "kv_cache_size",
        " KV cache size",
        form("{device} KV cache size: {kv_cache_size_tokens} tokens", since="0.8.0"),
        form("{device} KV cache size~{kv_cache_size_tokens} tokens"),
        form("{device} KV cache size~{kv_cache_size_tokens:grouped}"),
        lead=DEVICE,
    ),
    line_kind(
        "max_concurrency",
        "Maximum concurrency for ",
        form("Maximum concurrency for {max_concurrency_len} tokens per request~{max_concurrency}x"),
    ),
    line_kind(
        "num_gpu_blocks",
        " blocks: ",
        form("{device} blocks: {num_gpu_blocks}, # CPU blocks: {num_cpu_blocks}", until="0.11.0"),
        form("{device} blocks: {num_gpu_blocks}", until="0.7.3"),
        lead=DEVICE,
    ),
    line_kind(
        "num_gpu_blocks_after_init",
        "vllm cache_config_info with initialization",
        form(
            "vllm cache_config_info with initialization after num_gpu_blocks is: {num_gpu_blocks}",
            since="0.8.5",
        ),
    ),
    line_kind(
        "num_gpu_blocks_override",
        "Overriding num_gpu_blocks=",
        form(
            "Overriding num_gpu_blocks={num_gpu_blocks} with "
            "num_gpu_blocks_override={num_gpu_blocks_override}"
        ),
    ),
    line_kind(
        "context_parallel_factor",
        "Multiplying the GPU KV cache size by the ",
        form(
            "Multiplying the GPU KV cache size by the dcp_world_size {context_parallel_factor}",
            since="0.10.2",
            until="0.11.2",
        ),
        form(
            "Multiplying the GPU KV cache size by the cp_world_size {context_parallel_factor}",
            since="0.12.0",
            until="0.20.0",
        ),
    ),
    line_kind(
        "padding_layers",
        " padding layers, may waste at most ",
        form(
            "Add {padding_layers} padding layers, may waste at most {padding_waste_percent}% KV "
            "cache memory",
            since="0.9.2",
        ),
        lead="Add ",
    ),
    line_kind(
        "hybrid_manager_disabled",
        "Hybrid KV cache manager is disabled ",
        form("Hybrid KV cache manager is disabled for this hybrid model", since="0.9.2"),
        form(
            "Hybrid KV cache manager is disabled but failed to convert",
            since="0.9.2",
            until="0.26.0",
        ),
    ),
    line_kind(
        "kv_cache_block_size",
        "Setting kv cache block size to ",
        form(
            "Setting kv cache block size to {kv_cache_block_size} for {word} backend",
            since="0.18.0",
        ),
        form("Setting kv cache block size to {kv_cache_block_size}", since="0.10.0"),
    ),
    line_kind(
        "attention_block_size",
        "Setting attention block size to ",
        form("Setting attention block size to {attention_block_size} tokens", since="0.10.0"),
    ),
    line_kind(
        "mamba_page_padding",
        "Padding mamba page size by ",
        form("Padding mamba page size by {mamba_page_padding_percent}%", since="0.10.0"),
    ),
    line_kind(
        "auto_fit_max_model_len",
        "Auto-fit max_model_len: ",
        form(
            "Auto-fit max_model_len: full model context length {max_model_len} fits in available "
            "GPU memory",
            since="0.14.1",
            until="0.31.0",
        ),
        form(
            "Auto-fit max_model_len: reduced from {derived_max_model_len} to {max_model_len} to "
            "fit in available GPU memory[ ({available_kv_cache_gib} GiB available for KV cache)]",
            since="0.14.1",
            until="0.31.0",
        ),
        form(
            "Auto-fit max_model_len: full model context length {max_model_len} fits in available "
            "KV cache memory[ ({available_kv_cache_gib} GiB {device})]",
            since="0.32.0",
        ),
        form(
            "Auto-fit max_model_len: reduced from {derived_max_model_len} to {max_model_len} to "
            "fit in available KV cache memory[ ({available_kv_cache_gib} GiB {device})]",
            since="0.32.0",
        ),
        form(
            "Auto-fit max_model_len: attention-free model, using derived "
            "max_model_len={max_model_len}",
            since="0.14.1",
        ),
    ),
    line_kind(
        "engine_ready",
        "init engine (profile, create kv cache, warmup model) took ",
        form(
            "init engine (profile, create kv cache, warmup model) took {init_seconds} seconds",
            until="0.19.1",
        ),
        form(
            "init engine (profile, create kv cache, warmup model) took {init_seconds} s"
            "[ (compilation: {compilation_seconds} s]",
            since="0.20.0",
        ),
    ),
)

RUNNING_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "statistics",
        "Running: ",
        form(
            "Running: {num_requests_running} reqs, Waiting: {num_requests_waiting} reqs"
            "[, Deferred: {num_requests_deferred} reqs][, KV fetch: {other}]"
            "[, Preemptions: {num_preemptions}][, {device} KV cache usage: "
            "{kv_cache_usage_percent}%][, Prefix cache hit rate: {prefix_cache_hit_percent}%]",
            since="0.7.3",
        ),
        form(
            "Running: {num_requests_running} reqs, Swapped: {num_requests_swapped} reqs, Pending: "
            "{num_requests_waiting} reqs, GPU KV cache usage: {kv_cache_usage_percent}%"
            "[, CPU KV cache usage: {cpu_kv_cache_usage_percent}%]",
            until="0.11.0",
        ),
    ),
    line_kind(
        "iteration_statistics",
        "Iteration(",
        form(
            "Iteration({iteration}): {context_requests} context requests, {context_tokens} context "
            "tokens, {generation_requests} generation requests, {generation_tokens} generation "
            "tokens...{device} KV cache usage: {kv_cache_usage_percent}%",
            since="0.26.0",
        ),
    ),
    line_kind(
        "preemption",
        " is preempted by ",
        form(
            "Sequence group {word} is preempted by PreemptionMode.{mode} mode because there is not "
            "enough KV cache space...total_num_cumulative_preemption={cumulative_preemptions}",
            until="0.10.2",
        ),
        form(
            "Sequence group {word} is preempted by PreemptionMode.{mode} mode because there is not "
            "enough KV cache space...total_cumulative_preemption_cnt={cumulative_preemptions}",
            until="0.6.5",
        ),
        form("Sequence group {word} is preempted by PreemptionMode.{mode} mode", until="0.10.2"),
        lead="Sequence group ",
    ),
)
