"""Lines about the KV cache, and those of a running server."""

from typing import Final

from tests.readings.line_row import Row

CACHE: Final = (
    Row("17", "num_gpu_blocks", "0.6.6", "0.6.6",
        "# {device} blocks: {num_gpu_blocks}, # CPU blocks: {num_cpu_blocks}",
        {"device": "GPU", "num_gpu_blocks": 13_440, "num_cpu_blocks": 2_048},
        file="gpu_executor.py"),
    Row("17", "num_gpu_blocks", "0.7.3", "0.11.0",
        "# {device} blocks: {num_gpu_blocks}, # CPU blocks: {num_cpu_blocks}",
        {"device": "cuda", "num_gpu_blocks": 13_440, "num_cpu_blocks": 2_048},
        file="executor_base.py"),
    Row("17", "num_gpu_blocks", "0.6.6", "0.7.3", "# {device} blocks: {num_gpu_blocks}",
        {"device": "GPU", "num_gpu_blocks": 13_440}, file="kv_cache_utils.py"),
    Row("18", "kv_cache_size", "0.8.0", "0.27.1",
        "{device} KV cache size: {kv_cache_size_tokens:,} tokens",
        {"device": "GPU", "kv_cache_size_tokens": 215_040}, file="kv_cache_utils.py"),
    Row("markdown", "kv_cache_size", None, None, "| {device} KV cache size | "
    "`{kv_cache_size_tokens:,} tokens` |",
        {"device": "GPU", "kv_cache_size_tokens": 215_040}),
    Row("markdown", "kv_cache_size", None, None, "`{device} KV cache size: "
    "{kv_cache_size_tokens:,}`",
        {"device": "GPU", "kv_cache_size_tokens": 215_040}),
    Row("19", "max_concurrency", "0.6.6", "0.7.3",
        "Maximum concurrency for {max_concurrency_len} tokens per request: {max_concurrency:.2f}x",
        {"max_concurrency_len": 32_768, "max_concurrency": 6.56}, file="executor_base.py"),
    Row("19", "max_concurrency", "0.8.0", "0.27.1",
        "Maximum concurrency for {max_concurrency_len:,} tokens per request: "
        "{max_concurrency:.2f}x",
        {"max_concurrency_len": 32_768, "max_concurrency": 6.56}, file="kv_cache_utils.py"),
    Row("20", "kv_cache_size_and_concurrency", "0.28.0", None,
        "{device} KV cache size: {kv_cache_size_tokens:,} tokens, Maximum concurrency for "
        "{max_concurrency_len:,} tokens per request: {max_concurrency:.2f}x",
        {"device": "GPU", "kv_cache_size_tokens": 215_040, "max_concurrency_len": 32_768,
         "max_concurrency": 6.56}, file="kv_cache_utils.py"),
    Row("20", "kv_cache_size_and_concurrency", "0.30.0", None,
        "{device} KV cache size: {kv_cache_size_tokens:,} tokens, Maximum concurrency for "
        "{max_concurrency_len:,} tokens per request: {max_concurrency:.2f}x",
        {"device": "XPU", "kv_cache_size_tokens": 987, "max_concurrency_len": 512,
         "max_concurrency": 1.93}, file="kv_cache_utils.py"),
    Row("20", "kv_cache_size_and_concurrency", "0.32.0", None,
        "{device} KV cache size: {kv_cache_size_tokens:,} tokens, Maximum concurrency for "
        "{max_concurrency_len:,} tokens per request: {max_concurrency:.2f}x",
        {"device": "GPU + host", "kv_cache_size_tokens": 12_345_678,
         "max_concurrency_len": 1_048_576, "max_concurrency": 11.77}, file="kv_cache_utils.py"),
    Row("21", "context_parallel_factor", "0.10.2", "0.11.2",
        "Multiplying the GPU KV cache size by the dcp_world_size {context_parallel_factor}.",
        {"context_parallel_factor": 4}, file="kv_cache_utils.py"),
    Row("21", "context_parallel_factor", "0.12.0", "0.20.0",
        "Multiplying the GPU KV cache size by the cp_world_size {context_parallel_factor} "
        "(pcp_world_size 2 * dcp_world_size 4).", {"context_parallel_factor": 8},
        file="kv_cache_utils.py"),
    Row("22", "num_gpu_blocks_override", "0.6.6", None,
        "Overriding num_gpu_blocks={num_gpu_blocks} with "
        "num_gpu_blocks_override={num_gpu_blocks_override}",
        {"num_gpu_blocks": 13_440, "num_gpu_blocks_override": 512}, file="kv_cache_utils.py"),
    Row("23", "padding_layers", "0.9.2", None,
        "Add {padding_layers} padding layers, may waste at most {padding_waste_percent:.2f}% KV "
        "cache memory", {"padding_layers": 4, "padding_waste_percent": 8.33}, level="WARNING",
        file="kv_cache_utils.py"),
    Row("24", "hybrid_manager_disabled", "0.9.2", None,
        "Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable "
        "any "
        "optimizations for saving KV cache memory (e.g., dropping the KV cache outside the sliding "
        "window). The compute of layers like sliding window is still saved.", level="WARNING",
        file="kv_cache_utils.py"),
    Row("24", "hybrid_manager_disabled", "0.9.2", "0.26.0",
        "Hybrid KV cache manager is disabled but failed to convert the KV cache specs to one "
        "unified type.", level="ERROR", file="kv_cache_utils.py"),
    Row("25", "kv_cache_block_size", "0.18.1", None,
        "Setting kv cache block size to {kv_cache_block_size} for {word} backend.",
        {"kv_cache_block_size": 64, "word": "FLASHMLA"}, file="interface.py"),
    Row("25", "kv_cache_block_size", "0.13.0", "0.22.1",
        "[ROCM_AITER_UNIFIED_ATTN]: Setting kv cache block size to {kv_cache_block_size}.",
        {"kv_cache_block_size": 64}, file="rocm_aiter_unified_attn.py"),
    Row("25", "attention_block_size", "0.20.0", None,
        "Setting attention block size to {attention_block_size} tokens to ensure that attention "
        "page size is >= mamba page size.", {"attention_block_size": 1_072}, file="interface.py"),
    Row("25", "mamba_page_padding", "0.20.0", None,
        "Padding mamba page size by {mamba_page_padding_percent:.2f}% to ensure that mamba page "
        "size and attention page size are exactly equal.", {"mamba_page_padding_percent": 1.25},
        file="interface.py"),
    Row("26", "auto_fit_max_model_len", "0.14.1", "0.31.0",
        "Auto-fit max_model_len: full model context length {max_model_len} fits in available GPU "
        "memory", {"max_model_len": 40_960}, file="kv_cache_utils.py"),
    Row("26", "auto_fit_max_model_len", "0.14.1", "0.31.0",
        "Auto-fit max_model_len: reduced from {derived_max_model_len} to {max_model_len} to fit in "
        "available GPU memory ({available_kv_cache_gib} GiB available for KV cache)",
        {"derived_max_model_len": 131_072, "max_model_len": 54_320,
         "available_kv_cache_gib": 8.29}, file="kv_cache_utils.py"),
    Row("26", "auto_fit_max_model_len", "0.32.0", None,
        "Auto-fit max_model_len: full model context length {max_model_len} fits in available KV "
        "cache memory ({available_kv_cache_gib} GiB {device})",
        {"max_model_len": 40_960, "available_kv_cache_gib": 16.1, "device": "GPU"},
        file="kv_cache_utils.py"),
    Row("26", "auto_fit_max_model_len", "0.32.0", None,
        "Auto-fit max_model_len: reduced from {derived_max_model_len} to {max_model_len} to fit in "
        "available KV cache memory ({available_kv_cache_gib} GiB {device})",
        {"derived_max_model_len": 131_072, "max_model_len": 54_320, "available_kv_cache_gib": 8.29,
         "device": "GPU"}, file="kv_cache_utils.py"),
    Row("26", "auto_fit_max_model_len", "0.14.1", None,
        "Auto-fit max_model_len: attention-free model, using derived max_model_len={max_model_len}",
        {"max_model_len": 8_192}, file="kv_cache_utils.py"),
    Row("32", "engine_ready", "0.6.6", "0.19.1",
        "init engine (profile, create kv cache, warmup model) took {init_seconds:.2f} seconds",
        {"init_seconds": 61.5}, file="core.py"),
    Row("32", "engine_ready", "0.20.0", None,
        "init engine (profile, create kv cache, warmup model) took {init_seconds:.2f} s "
        "(compilation: {compilation_seconds:.2f} s)",
        {"init_seconds": 61.5, "compilation_seconds": 22.25}, file="core.py"),
    Row("32", "engine_ready", "0.20.0", None,
        "init engine (profile, create kv cache, warmup model) took {init_seconds:.2f} s",
        {"init_seconds": 61.5}, file="core.py"),
    Row("after", "num_gpu_blocks_after_init", "0.8.5", None,
        "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: "
        "{num_gpu_blocks}", {"num_gpu_blocks": 13_440}, file="loggers.py"),
)  # fmt: skip

RUNNING: Final = (
    Row("statistics", "statistics", "0.6.6", "0.10.2",
        "Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 3.0 tokens/s, Running: "
        "{num_requests_running} reqs, Swapped: {num_requests_swapped} reqs, Pending: "
        "{num_requests_waiting} reqs, GPU KV cache usage: {kv_cache_usage_percent:.1f}%, CPU KV "
        "cache usage: {cpu_kv_cache_usage_percent:.1f}%.",
        {"num_requests_running": 7, "num_requests_swapped": 1, "num_requests_waiting": 3,
         "kv_cache_usage_percent": 88.5, "cpu_kv_cache_usage_percent": 0.0}, file="metrics.py"),
    Row("statistics", "statistics", "0.8.5", None,
        "Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 3.0 "
        "tokens/s, "
        "Running: {num_requests_running} reqs, Waiting: {num_requests_waiting} reqs, {device} KV "
        "cache usage: {kv_cache_usage_percent:.1f}%, Prefix cache hit rate: "
        "{prefix_cache_hit_percent:.1f}%",
        {"num_requests_running": 7, "num_requests_waiting": 3, "device": "GPU",
         "kv_cache_usage_percent": 88.5, "prefix_cache_hit_percent": 41.0}, file="loggers.py"),
    Row("statistics", "statistics", "0.20.0", None,
        "Engine 001: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 3.0 "
        "tokens/s, "
        "Running: {num_requests_running} reqs, Waiting: {num_requests_waiting} reqs, Deferred: "
        "{num_requests_deferred} reqs, Preemptions: {num_preemptions}, {device} KV cache usage: "
        "{kv_cache_usage_percent:.1f}%, Prefix cache hit rate: {prefix_cache_hit_percent:.1f}%, MM "
        "cache hit rate: 0.0%",
        {"num_requests_running": 7, "num_requests_waiting": 3, "num_requests_deferred": 2,
         "num_preemptions": 5, "device": "GPU", "kv_cache_usage_percent": 99.5,
         "prefix_cache_hit_percent": 41.0}, file="loggers.py"),
    Row("iteration", "iteration_statistics", "0.26.0", None,
        "Iteration({iteration}): {context_requests} context requests, {context_tokens} context "
        "tokens, {generation_requests} generation requests, {generation_tokens} generation tokens, "
        "iteration elapsed time: 12.50 ms, {device} KV cache usage: {kv_cache_usage_percent:.1f}%",
        {"iteration": 81, "context_requests": 1, "context_tokens": 512, "generation_requests": 6,
         "generation_tokens": 6, "device": "GPU", "kv_cache_usage_percent": 12.5},
        file="loggers.py"),
    Row("preemption", "preemption", "0.6.6", "0.10.2",
        "Sequence group {word} is preempted by PreemptionMode.{mode} mode because there is not "
        "enough KV cache space. This can affect the end-to-end performance. Increase "
        "gpu_memory_utilization or tensor_parallel_size to provide more KV cache memory. "
        "total_num_cumulative_preemption={cumulative_preemptions}",
        {"word": "31", "mode": "RECOMPUTE", "cumulative_preemptions": 51}, level="WARNING",
        file="scheduler.py"),
    Row("preemption", "preemption", None, "0.6.5",
        "Sequence group {word} is preempted by PreemptionMode.{mode} mode because there is not "
        "enough KV cache space. total_cumulative_preemption_cnt={cumulative_preemptions}",
        {"word": "31", "mode": "SWAP", "cumulative_preemptions": 1}, level="WARNING",
        file="scheduler.py"),
)  # fmt: skip
