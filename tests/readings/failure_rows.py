"""Texts with which a start fails."""

from typing import Final

from app.readings.observation import Value
from tests.readings.line_row import Row

_NEED: Final[dict[str, Value]] = {
    "max_model_len": 96_000, "needed_gib": 11.72, "available_gib": 3.5,
    "estimated_max_model_len": 28_656,
}  # fmt: skip
_SMALL: Final = (
    "KV cache is needed, which is larger than the available KV cache memory ({available_gib"
)
_TRY: Final = (
    "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
    "engine."
)
_DOCS: Final = (
    " See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
)
_BLOCKED: Final = (
    "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
    "initializing the engine"
)
FAILURES: Final = (
    Row("E1", "no_memory_for_kv_cache", "0.6.6", "0.12.0", _BLOCKED + "."),
    Row("E1", "no_memory_for_kv_cache", "0.13.0", "0.21.0", _BLOCKED + "." + _DOCS),
    Row("E1", "no_memory_for_kv_cache", "0.22.1", None,
        _BLOCKED + " (this flag also controls CPU memory reservation on the CPU backend, despite "
        "its name)." + _DOCS),
    Row("E2a", "kv_cache_too_small", "0.6.6", "0.10.2",
        "The model's max seq len ({max_model_len}) is larger than the maximum number of tokens "
        "that "
        "can be stored in KV cache ({kv_cache_size_tokens}). " + _TRY,
        {"max_model_len": 32_768, "kv_cache_size_tokens": 20_112}),
    Row("E2b", "kv_cache_too_small", "0.7.3", "0.8.0",
        "To serve at least one request with the models's max seq len ({max_model_len}), "
        "({needed_gib:.2f} GB " + _SMALL + ":.2f} GB). " + _TRY, _NEED),
    Row("E2c", "kv_cache_too_small", "0.8.5", "0.9.0",
        "To serve at least one request with the models's max seq len ({max_model_len}), "
        "({needed_gib:.2f} GiB " + _SMALL + ":.2f} GiB).  " + _TRY, _NEED),
    Row("E2c", "kv_cache_too_small", "0.9.2", "0.12.0",
        "To serve at least one request with the models's max seq len ({max_model_len}), "
        "({needed_gib:.2f} GiB " + _SMALL + ":.2f} GiB). Based on the available memory, the "
        "estimated maximum model length is {estimated_max_model_len}. " + _TRY, _NEED),
    Row("E2c", "kv_cache_too_small", "0.13.0", "0.13.0",
        "To serve at least one request with the models's max seq len ({max_model_len}), "
        "({needed_gib:.2f} GiB " + _SMALL + ":.2f} GiB). Based on the available memory, the "
        "estimated maximum model length is {estimated_max_model_len}. " + _TRY + _DOCS, _NEED),
    Row("E2d", "kv_cache_too_small", "0.14.1", "0.21.0",
        "To serve at least one request with the models's max seq len ({max_model_len}), "
        "({needed_gib} GiB " + _SMALL + "} GiB). Based on the available memory, the estimated "
        "maximum model length is {estimated_max_model_len}. " + _TRY + _DOCS, _NEED),
    Row("E2d", "kv_cache_too_small", "0.22.1", None,
        "To serve at least one request with the model's max seq len ({max_model_len}), "
        "({needed_gib} GiB " + _SMALL + "} GiB). Based on the available memory, the estimated "
        "maximum model length is {estimated_max_model_len}. Try increasing "
        "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
        "decreasing "
        "`max_model_len` when initializing the engine." + _DOCS, _NEED),
    Row("E2d", "kv_cache_too_small", "0.22.1", None,
        "To serve at least one request with the model's max seq len ({max_model_len}), "
        "({needed_gib} GiB " + _SMALL + "} GiB). Try increasing `gpu_memory_utilization` (which "
        "also "
        "controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing "
        "the "
        "engine." + _DOCS, _NEED),
    Row("E3", "free_memory_below_request", "0.9.2", "0.13.0",
        "Free memory on device ({free_memory_gib}/{total_memory_gib} GiB) on startup is less than "
        "desired GPU memory utilization ({gpu_memory_utilization}, {requested_memory_gib} GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        {"free_memory_gib": 30.02, "total_memory_gib": 47.4, "gpu_memory_utilization": 0.9,
         "requested_memory_gib": 42.66}),
    Row("E3", "free_memory_below_request", "0.14.1", None,
        "Free memory on device cuda:1 ({free_memory_gib}/{total_memory_gib} GiB) on startup is "
        "less "
        "than desired GPU memory utilization ({gpu_memory_utilization}, {requested_memory_gib} "
        "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        {"free_memory_gib": 30.02, "total_memory_gib": 47.4, "gpu_memory_utilization": 0.92,
         "requested_memory_gib": 43.61}),
    Row("E4", "memory_changed_during_profiling", "0.6.6", "0.9.0",
        "Error in memory profiling. Initial free memory {free_memory_bytes}, current free memory "
        "{current_free_bytes}. This happens when the GPU memory was not properly cleaned up before "
        "initializing the vLLM instance.",
        {"free_memory_bytes": 40_802_189_312, "current_free_bytes": 41_802_189_312}),
    Row("E4", "memory_changed_during_profiling", "0.9.2", None,
        "Error in memory profiling. Initial free memory {free_memory_gib} GiB, current free memory "
        "{current_free_gib} GiB. This happens when other processes sharing the same container "
        "release GPU memory while vLLM is profiling during initialization.",
        {"free_memory_gib": 38.0, "current_free_gib": 38.93}),
    Row("E5", "auto_fit_failed", "0.14.1", None,
        "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single "
        "token. Try increasing `gpu_memory_utilization`."),
    Row("E6", "sampler_warmup_out_of_memory", "0.8.0", None,
        "CUDA out of memory occurred when warming up sampler with {dummy_requests} dummy requests. "
        "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the "
        "engine.", {"dummy_requests": 1_024}),
    Row("E6", "pooler_warmup_out_of_memory", "0.9.2", "0.9.2",
        "CUDA out of memory occurred when warming up pooler with {dummy_requests} dummy requests. "
        "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the "
        "engine.", {"dummy_requests": 256}),
    Row("E6", "pooler_warmup_out_of_memory", "0.10.0", None,
        "CUDA out of memory occurred when warming up pooler (task=embed) with {dummy_requests} "
        "dummy "
        "requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when "
        "initializing "
        "the engine.", {"dummy_requests": 256}),
    Row("E7", "out_of_memory", "0.6.6", None,
        "CUDA out of memory. Tried to allocate {tried_amount:.2f} MiB. GPU {gpu_index} has a total "
        "capacity of {total_memory_gib:.2f} GiB of which {free_amount:.2f} MiB is free. Including "
        "non-PyTorch memory, this process has {process_gib:.2f} GiB memory in use. Of the "
        "allocated "
        "memory 46.10 GiB is allocated by PyTorch.",
        {"tried_amount": 896.0, "gpu_index": 3, "total_memory_gib": 47.4, "free_amount": 310.5,
         "process_gib": 47.09}),
    Row("E7", "out_of_memory", "0.6.6", None,
        "Tried to allocate {tried_amount:.2f} GiB", {"tried_amount": 1.5}),
    Row("E8", "context_too_long", "0.6.6", None,
        "User-specified max_model_len ({max_model_len}) is greater than the derived max_model_len "
        "(max_position_embeddings={derived_max_model_len} or model_max_length=None in model's "
        "config.json).", {"max_model_len": 262_144, "derived_max_model_len": 40_960}),
    Row("E8", "context_too_long", None, None,
        "User-specified max_model_len ({max_model_len}) is greater than the derived max_model_len "
        "(None={derived_max_model_len} in model's config.json).",
        {"max_model_len": 8_192, "derived_max_model_len": 2_048}),
    Row("E9", "free_memory_below_engine_budget", "0.32.0", None,
        "Free memory on device cuda:0 ({free_memory_gib}/{total_memory_gib} GiB) on startup is "
        "less "
        "than the engine's budget after excluding external process's weights "
        "({gpu_memory_utilization}, {engine_budget_gib} GiB). Decrease GPU memory utilization or "
        "reduce GPU memory used by other processes.",
        {"free_memory_gib": 12.5, "total_memory_gib": 94.97, "gpu_memory_utilization": 0.92,
         "engine_budget_gib": 19.67}),
    Row("E9", "external_weights_exceed_budget", "0.32.0", None,
        "Externally held weights on device cuda:0 (90.1 GiB) exceed the desired GPU memory "
        "utilization (0.92, 87.37 GiB)."),
    Row("mamba", "mamba_blocks_below_max_num_seqs", "0.15.1", None,
        "max_num_seqs ({max_num_seqs}) exceeds available Mamba cache blocks ({mamba_blocks}). Each "
        "decode sequence requires one Mamba cache block.",
        {"max_num_seqs": 1_024, "mamba_blocks": 803}),
    Row("heads", "heads_not_divisible", "0.6.6", None,
        "Total number of attention heads ({num_attention_heads}) must be divisible by tensor "
        "parallel size ({tensor_parallel_size}).",
        {"num_attention_heads": 64, "tensor_parallel_size": 3}),
    Row("weights", "weights_do_not_fit", "0.17.1", None,
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to "
        "free "
        "memory for weights, increasing --tensor-parallel-size, or using --quantization.",
        level="ERROR", file="gpu_model_runner.py"),
    Row("cuda", "cuda_error", "0.6.6", None, "CUDA error: {detail}",
        {"detail": "an illegal memory access was encountered"}),
    Row("engine", "engine_core_failed", "0.8.0", None,
        "Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"),
)  # fmt: skip
