"""Lines about CUDA graphs, and the memory summary behind them."""

from typing import Final

from app.readings.observation import Value
from tests.readings.line_row import Row

_UTIL_NOTE: Final = (
    "The current --gpu-memory-utilization={gpu_memory_utilization:.4f} is equivalent to "
    "--gpu-memory-utilization={equivalent_gpu_memory_utilization:.4f} without CUDA graph memory "
    "profiling. To maintain the same effective KV cache size as before, increase "
    "--gpu-memory-utilization to {suggested_gpu_memory_utilization:.4f}."
)
_UTIL_SAMPLES: Final[dict[str, Value]] = {
    "gpu_memory_utilization": 0.92,
    "equivalent_gpu_memory_utilization": 0.9075,
    "suggested_gpu_memory_utilization": 0.9325,
}
_SUMMARY_HEAD: Final = (
    "Free memory on device ({free_memory_gib}/{total_memory_gib} GiB) on startup. Desired GPU "
    "memory utilization is ({gpu_memory_utilization}, {requested_memory_gib} GiB). "
)
_BY_TERM: Final = (
    "Actual usage is {weights_gib} GiB for weight, {peak_activation_gib} GiB for peak activation, "
    "{non_torch_gib} GiB for non-torch memory, and {cudagraph_gib} GiB for CUDAGraph memory. "
)
_CONSUMED: Final = (
    "Actual usage is {consumed_gib} GiB for consumed memory (weights + non-torch), "
    "{peak_activation_printed_gib} GiB for peak activation, and {cudagraph_gib} GiB for CUDAGraph "
    "memory. "
)
_ADVICE: Final = (
    "Replace gpu_memory_utilization config with "
    "`--kv-cache-memory={suggested_kv_cache_memory_bytes}` ({suggested_gib} GiB) to fit into "
    "requested memory, or `--kv-cache-memory={max_kv_cache_memory_bytes}` ({max_gib} GiB) to fully "
    "utilize gpu memory. Current kv cache memory in use is {kv_cache_in_use_gib} GiB."
)
_ADVICE_BYTES: Final = (
    "Replace gpu_memory_utilization config with "
    "`--kv-cache-memory={suggested_kv_cache_memory_bytes}` to fit into requested memory, or "
    "`--kv-cache-memory={max_kv_cache_memory_bytes}` to fully utilize gpu memory. Current kv cache "
    "memory in use is {kv_cache_in_use_bytes} bytes."
)
_SUMMARY: Final[dict[str, Value]] = {
    "free_memory_gib": 93.87, "total_memory_gib": 94.97, "gpu_memory_utilization": 0.915,
    "requested_memory_gib": 86.9, "weights_gib": 67.7, "peak_activation_gib": 1.31,
    "non_torch_gib": -0.04, "cudagraph_gib": 0.52, "consumed_gib": 68.1,
    "peak_activation_printed_gib": 2.02, "suggested_kv_cache_memory_bytes": 17_235_968_112,
    "suggested_gib": 16.05, "max_kv_cache_memory_bytes": 24_715_325_440, "max_gib": 23.02,
    "kv_cache_in_use_gib": 16.72, "kv_cache_in_use_bytes": 17_952_963_297,
}  # fmt: skip
GRAPHS: Final = (
    Row("12", "cudagraph_profiling", "0.18.1", None,
        "Profiling CUDA graph memory: PIECEWISE={piecewise_graphs} (largest={piecewise_largest}), "
        "FULL={full_graphs} (largest={full_largest})",
        {"piecewise_graphs": 51, "piecewise_largest": 512, "full_graphs": 35, "full_largest": 256},
        file="gpu_model_runner.py"),
    Row("12", "cudagraph_profiling", "0.18.1", None,
        "Profiling CUDA graph memory: FULL={full_graphs} (largest={full_largest})",
        {"full_graphs": 7, "full_largest": 32}, file="gpu_model_runner.py"),
    Row("13", "cudagraph_estimate", "0.18.1", None,
        "Estimated CUDA graph memory: {cudagraph_estimate_gib:.2f} GiB total",
        {"cudagraph_estimate_gib": -0.35}, file="gpu_model_runner.py"),
    Row("14", "cudagraph_estimate_part", "0.18.1", None,
        "Estimated {mode} CUDA graph memory: {first_capture_mib:.2f} MiB first-capture + "
        "({graphs}-1) \u00d7 {per_graph_mib:.2f} MiB per-graph",
        {"mode": "PIECEWISE", "first_capture_mib": 96.5, "graphs": 51, "per_graph_mib": 4.25},
        level="DEBUG", file="gpu_model_runner.py"),
    Row("14", "cudagraph_estimate_part", "0.23.0", None,
        "Estimated {mode} CUDA graph memory: {first_capture_mib:.2f} MiB for {graphs} graphs",
        {"mode": "encoder", "first_capture_mib": 31.5, "graphs": 4}, file="gpu_model_runner.py"),
    Row("15", "cudagraph_profiling_enabled", "0.18.1", "0.19.1",
        "CUDA graph memory profiling is enabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1). This "
        "will become the default in v0.19. " + _UTIL_NOTE, _UTIL_SAMPLES),
    Row("15", "cudagraph_profiling_enabled", "0.20.0", None,
        "CUDA graph memory profiling is enabled (default since v0.21.0). " + _UTIL_NOTE
        + " To disable, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.", _UTIL_SAMPLES),
    Row("16", "cudagraph_profiling_disabled", "0.18.1", "0.19.1",
        "In v0.19, CUDA graph memory profiling will be enabled by default "
        "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA "
        "graph "
        "memory during KV cache allocation. To try it now, set "
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase --gpu-memory-utilization from "
        "{gpu_memory_utilization:.4f} to {suggested_gpu_memory_utilization:.4f} to maintain the "
        "same "
        "effective KV cache size.",
        {"gpu_memory_utilization": 0.9, "suggested_gpu_memory_utilization": 0.9125}),
    Row("16", "cudagraph_profiling_disabled", "0.20.0", None,
        "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
        "Without it, CUDA graph memory is not accounted for during KV cache allocation, which may "
        "require lowering --gpu-memory-utilization to avoid OOM. Consider re-enabling it (the "
        "default as of v0.21.0) and increasing --gpu-memory-utilization from "
        "{gpu_memory_utilization:.4f} to {suggested_gpu_memory_utilization:.4f}.",
        {"gpu_memory_utilization": 0.95, "suggested_gpu_memory_utilization": 0.9725},
        level="WARNING"),
    Row("16", "cudagraph_profiling_disabled", "0.20.0", None,
        "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
        "Without", level="WARNING"),
    Row("27", "graph_capture", "0.6.6", None,
        "Graph capturing finished in {capture_seconds:.0f} secs, took {cudagraph_gib:.2f} GiB",
        {"capture_seconds": 19.0, "cudagraph_gib": -0.06}, file="gpu_model_runner.py"),
    Row("27", "graph_capture", None, "0.6.6",
        "Graph capturing finished in {capture_seconds:.0f} secs.", {"capture_seconds": 9.0},
        file="model_runner.py"),
    Row("28", "cudagraph_pool", "0.18.1", None,
        "CUDA graph pool memory: {cudagraph_gib} GiB (actual), {cudagraph_estimate_gib} GiB "
        "(estimated), difference: {difference_gib} GiB ({difference_percent:.1f}%).",
        {"cudagraph_gib": 0.5, "cudagraph_estimate_gib": 0.75, "difference_gib": 0.25,
         "difference_percent": 50.0}),
)  # fmt: skip
SUMMARY: Final = (
    Row("29", "memory_summary", "0.10.2", "0.10.2", _SUMMARY_HEAD + _BY_TERM + _ADVICE_BYTES,
        _SUMMARY),
    Row("29", "memory_summary", "0.11.0", "0.25.1", _SUMMARY_HEAD + _BY_TERM + _ADVICE, _SUMMARY,
        level="DEBUG"),
    Row("29", "memory_summary", "0.26.0", "0.26.0", _SUMMARY_HEAD + _BY_TERM + _ADVICE, _SUMMARY),
    Row("30", "memory_summary", "0.27.1", None, _SUMMARY_HEAD + _CONSUMED + _ADVICE, _SUMMARY),
)  # fmt: skip
