"""Lines about weights and the memory profile."""

from typing import Final

from tests.readings.line_row import Row

WEIGHTS: Final = (
    Row("1", "model_loading", "0.6.6", "0.7.3", "Loading model weights took {weights_gib:.4f} GB",
        {"weights_gib": 15.1237}, file="model_runner.py"),
    Row("1", "model_loading", "0.8.5", "0.9.2", "Loading model weights took {weights_gib:.4f} GiB",
        {"weights_gib": 15.1237}, file="xpu_model_runner.py"),
    Row("2", "model_loading", "0.8.0", "0.8.0",
        "Model loading took {weights_gib:.4f} GB and {load_seconds:.6f} seconds",
        {"weights_gib": 15.1237, "load_seconds": 41.250031}, file="gpu_model_runner.py"),
    Row("3", "model_loading", "0.8.5", "0.11.0",
        "Model loading took {weights_gib:.4f} GiB and {load_seconds:.6f} seconds",
        {"weights_gib": 33.8512, "load_seconds": 88.125}, file="gpu_model_runner.py"),
    Row("3", "model_loading", "0.14.1", "0.27.1",
        "Model loading took {weights_gib} GiB and {load_seconds:.6f} seconds",
        {"weights_gib": 33.85, "load_seconds": 88.125}, file="model_runner.py"),
    Row("4", "model_loading", "0.11.2", "0.13.0",
        "Model loading took {weights_gib:.4f} GiB memory and {load_seconds:.6f} seconds",
        {"weights_gib": 33.8512, "load_seconds": 88.125}, file="gpu_model_runner.py"),
    Row("4", "model_loading", "0.14.1", None,
        "Model loading took {weights_gib} GiB memory and {load_seconds:.6f} seconds",
        {"weights_gib": 67.7, "load_seconds": 120.5}, file="gpu_model_runner.py"),
    Row("5", "weights_loading", "0.8.0", None, "Loading weights took {load_seconds:.2f} seconds",
        {"load_seconds": 17.25}, file="default_loader.py"),
    Row("checkpoint", "checkpoint_size", "0.19.1", None,
        "Filesystem type for checkpoints: XFS. Checkpoint size: {checkpoint_gib:.2f} GiB. "
        "Available RAM: {available_ram_gib:.2f} GiB.",
        {"checkpoint_gib": 67.67, "available_ram_gib": 491.2}, file="weight_utils.py"),
    Row("external", "external_weights", "0.32.0", None,
        "Weights are held outside this process: of the {budget_gib} GiB utilization budget, "
        "{external_weights_gib} GiB is externally held and {engine_budget_gib} GiB remains for the "
        "engine's own allocations.",
        {"budget_gib": 87.37, "external_weights_gib": 67.7, "engine_budget_gib": 19.67},
        file="utils.py"),
)  # fmt: skip

PROFILE: Final = (
    Row("6", "v0_memory_budget", "0.6.6", "0.10.2",
        "the current vLLM instance can use total_gpu_memory ({total_memory_gib:.2f}GiB) x "
        "gpu_memory_utilization ({gpu_memory_utilization:.2f}) = {requested_memory_gib:.2f}GiB",
        {"total_memory_gib": 47.4, "gpu_memory_utilization": 0.9, "requested_memory_gib": 42.66},
        file="worker.py"),
    Row("6", "v0_memory_profile", "0.6.6", "0.10.2",
        "model weights take {weights_gib:.2f}GiB; non_torch_memory takes {non_torch_gib:.2f}GiB; "
        "PyTorch activation peak memory takes {peak_activation_gib:.2f}GiB; the rest of the memory "
        "reserved for KV Cache is {available_kv_cache_gib:.2f}GiB.",
        {"weights_gib": 15.12, "non_torch_gib": -0.12, "peak_activation_gib": 1.41,
         "available_kv_cache_gib": 26.25}, file="worker.py"),
    Row("6", "memory_profile", "0.6.6", "0.10.2",
        "Memory profiling takes {profile_seconds:.2f} seconds", {"profile_seconds": 0.75},
        file="worker.py"),
    Row("7", "memory_profile", "0.9.2", "0.26.0",
        "Memory profiling takes {profile_seconds:.2f} seconds. Total non KV cache memory: "
        "{total_non_kv_gib:.2f}GiB; torch peak memory increase: {peak_activation_gib:.2f}GiB; "
        "non-torch forward increase memory: {non_torch_gib:.2f}GiB; weights memory: "
        "{weights_gib:.2f}GiB.",
        {"profile_seconds": 3.5, "total_non_kv_gib": 36.25, "peak_activation_gib": 2.1,
         "non_torch_gib": 0.3, "weights_gib": 33.85}, level="DEBUG"),
    Row("8", "memory_profile", "0.27.1", None,
        "Memory profiling takes {profile_seconds:.2f} seconds. Total non KV cache memory: "
        "{total_non_kv_gib}GiB; torch peak memory increase: {torch_peak_increase_gib}GiB; total "
        "consumed (from mem_get_info): {consumed_gib}GiB; weights memory: {weights_gib}GiB.",
        {"profile_seconds": 3.5, "total_non_kv_gib": 69.4, "torch_peak_increase_gib": 1.4,
         "consumed_gib": 68.1, "weights_gib": 67.7}, level="DEBUG"),
    Row("9", "initial_free_memory", "0.9.2", "0.10.0",
        "Initial free memory: {free_memory_gib:.2f} GiB, free memory: "
        "{free_after_profiling_gib:.2f} GiB, requested GPU memory: {requested_memory_gib:.2f} GiB",
        {"free_memory_gib": 78.84, "free_after_profiling_gib": 42.1, "requested_memory_gib": 71.3},
        level="DEBUG"),
    Row("9", "initial_free_memory", "0.10.1", "0.13.0",
        "Initial free memory: {free_memory_gib:.2f} GiB; Requested memory: "
        "{gpu_memory_utilization:.2f} (util), {requested_memory_gib:.2f} GiB",
        {"free_memory_gib": 78.84, "gpu_memory_utilization": 0.85, "requested_memory_gib": 67.36},
        level="DEBUG"),
    Row("9", "initial_free_memory", "0.14.1", None,
        "Initial free memory: {free_memory_gib} GiB; Requested memory: "
        "{gpu_memory_utilization:f} (util), {requested_memory_gib} GiB",
        {"free_memory_gib": 93.9, "gpu_memory_utilization": 0.915, "requested_memory_gib": 86.9},
        level="DEBUG"),
    Row("10", "free_memory_after_profiling", "0.10.1", None,
        "Free memory after profiling: {free_after_profiling_gib:.2f} GiB (total), "
        "{free_within_requested_gib:.2f} GiB (within requested)",
        {"free_after_profiling_gib": 25.75, "free_within_requested_gib": -1.25}, level="DEBUG"),
    Row("11", "available_kv_cache_memory", "0.9.2", "0.13.0",
        "Available KV cache memory: {available_kv_cache_gib:.2f} GiB",
        {"available_kv_cache_gib": 35.1}),
    Row("11", "available_kv_cache_memory", "0.14.1", None,
        "Available KV cache memory: {available_kv_cache_gib} GiB",
        {"available_kv_cache_gib": -2.7}),
    Row("34", "startup_plan", "0.26.0", None,
        "Applying persisted startup plan (fingerprint {fingerprint}): "
        "kv_cache_memory_bytes={reserved_kv_cache_bytes} ({_gib:.2f} GiB), recorded free-memory "
        "baseline 93.87 GiB, current 93.91 GiB. Memory profiling will be skipped.",
        {"fingerprint": "0badc0de0badc0de", "reserved_kv_cache_bytes": 17_235_968_112,
         "_gib": 16.05}, file="startup_plan.py"),
    Row("34", "startup_plan", "0.26.0", None, "Saved startup plan to /cache/plan_0badc0de.json",
        file="startup_plan.py"),
    Row("35", "free_memory_grew", "0.29.0", None,
        "Free memory grew by {grown_gib} GiB during profiling (initial {free_memory_gib} GiB, "
        "current {free_after_profiling_gib} GiB). Sizing the KV cache from the "
        "{torch_reserved_gib} GiB torch reserved instead of the profiling difference.",
        {"grown_gib": 1.5, "free_memory_gib": 189.0, "free_after_profiling_gib": 190.5,
         "torch_reserved_gib": 70.25}, level="WARNING"),
    Row("36", "sleep_mode", "0.8.0", None,
        "Sleep mode freed {freed_gib:.2f} GiB memory, {still_used_gib:.2f} GiB memory is still in "
        "use.", {"freed_gib": 70.5, "still_used_gib": 2.25}),
    Row("37", "worker_requested_memory", "0.14.1", None,
        "worker requested memory: {requested_memory_gib}GiB", {"requested_memory_gib": 86.9},
        level="DEBUG"),
    Row("37", "worker_memory_snapshot", "0.14.1", None,
        "worker init memory snapshot: torch_peak=0.0GiB, free_memory={free_memory_gib}GiB, "
        "total_memory={total_memory_gib}GiB, cuda_memory=1.1GiB, torch_memory=0.0GiB, "
        "non_torch_memory=1.1GiB, timestamp=1.5, auto_measure=True",
        {"free_memory_gib": 93.87, "total_memory_gib": 94.97}, level="DEBUG"),
    Row("37", "worker_memory_snapshot", "0.30.0", None,
        "worker init memory snapshot: torch_peak=0.0GiB, free={free_memory_gib}GiB, "
        "total={total_memory_gib}GiB, cuda=1.1GiB", {"free_memory_gib": 93.87,
        "total_memory_gib": 94.97}, level="DEBUG"),
    Row("cleared", "allocator_cache_cleared", "0.28.0", None,
        "Cleared {cleared_gib} GiB of cached CUDA allocator memory before KV cache allocation.",
        {"cleared_gib": 0.25}),
    Row("31", "reserved_kv_cache", "0.10.2", "0.11.0",
        "Initial free memory {free_memory_gib} GiB, reserved {reserved_kv_cache_gib:.2f}GiB memory "
        "for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. "
        "This does does not respect the gpu_memory_utilization config.",
        {"free_memory_gib": 30.9, "reserved_kv_cache_gib": 6.5}),
    Row("31", "reserved_kv_cache", "0.11.2", None,
        "Initial free memory {free_memory_gib} GiB, reserved {reserved_kv_cache_gib} GiB memory "
        "for "
        "KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. This "
        "does not respect the gpu_memory_utilization config.",
        {"free_memory_gib": 30.9, "reserved_kv_cache_gib": 6.5}),
    Row("results", "v0_memory_results", None, "0.6.5",
        "Memory profiling results: total_gpu_memory={total_memory_gib:.2f}GiB "
        "initial_memory_usage={initial_usage_gib:.2f}GiB peak_torch_memory={peak_torch_gib:.2f}GiB "
        "memory_usage_post_profile={usage_after_gib:.2f}Gib "
        "non_torch_memory={non_torch_gib:.2f}GiB kv_cache_size={available_kv_cache_gib:.2f}GiB "
        "gpu_memory_utilization={gpu_memory_utilization:.2f}",
        {"total_memory_gib": 47.4, "initial_usage_gib": 15.5, "peak_torch_gib": 16.9,
         "usage_after_gib": 15.6, "non_torch_gib": 0.4, "available_kv_cache_gib": 25.3,
         "gpu_memory_utilization": 0.9}, file="worker.py"),
    Row("december", "v0_memory_budget", None, "0.6.6", "total_gpu_memory     "
    "{total_memory_gib:.2f}GiB",
        {"total_memory_gib": 47.4}, file="worker.py"),
    Row("december", "v0_memory_budget", None, "0.6.6",
        "the current vLLM instance can use    {requested_memory_gib:.2f}GiB",
        {"requested_memory_gib": 42.66}, file="worker.py"),
    Row("december", "v0_memory_profile", None, "0.6.6",
        "available_kv_cache_memory    {available_kv_cache_gib:.2f}GiB",
        {"available_kv_cache_gib": 26.2}, file="worker.py"),
)  # fmt: skip
