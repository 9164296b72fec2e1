"""Kinds of lines by release: vLLM's wordings with numbers of our own.

`row` is the row of the catalogue of log lines that the kind stands for (1 to 37, E1 to E9), or a
name of ours for lines beyond it. Placeholders that begin with an underscore are printed but not
read; the others are what the reader must return.
"""

from dataclasses import dataclass, field
from string import Formatter
from typing import Final

from app.readings.observation import Value
from tests.readings.releases import RELEASES, within


@dataclass(frozen=True)
class Row:
    """One wording and the releases that print it; `values` are samples for its placeholders."""

    row: str
    kind: str
    since: str | None
    until: str | None
    text: str
    values: dict[str, Value] = field(default_factory=dict)
    level: str = "INFO"
    file: str = "gpu_worker.py"

    def printed(self, **values: Value) -> str:
        """The line with these values in place of the samples."""
        return self.text.format(**{**self.values, **values})

    def expected(self, **values: Value) -> dict[str, Value]:
        """What the reader must return: each value as precise as it was printed."""
        merged = {**self.values, **values}
        read: dict[str, Value] = {}
        for _, name, spec, _ in Formatter().parse(self.text):
            if name and not name.startswith("_"):
                value = merged[name]
                text = format(value, spec or "").replace(",", "")
                read[name] = value if isinstance(value, str) else type(value)(float(text))
        return read

    @property
    def releases(self) -> tuple[str, ...]:
        """Known releases that print it."""
        return tuple(version for version in RELEASES if within(version, self.since, self.until))


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
        "Initial free memory {free_memory_gib} GiB, reserved {reserved_kv_cache_gib} GiB memory for "
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
    Row("december", "v0_memory_budget", None, "0.6.6", "total_gpu_memory     {total_memory_gib:.2f}GiB",
        {"total_memory_gib": 47.4}, file="worker.py"),
    Row("december", "v0_memory_budget", None, "0.6.6",
        "the current vLLM instance can use    {requested_memory_gib:.2f}GiB",
        {"requested_memory_gib": 42.66}, file="worker.py"),
    Row("december", "v0_memory_profile", None, "0.6.6",
        "available_kv_cache_memory    {available_kv_cache_gib:.2f}GiB",
        {"available_kv_cache_gib": 26.2}, file="worker.py"),
)  # fmt: skip

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
        "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA graph "
        "memory during KV cache allocation. To try it now, set "
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase --gpu-memory-utilization from "
        "{gpu_memory_utilization:.4f} to {suggested_gpu_memory_utilization:.4f} to maintain the same "
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
    Row("markdown", "kv_cache_size", None, None, "| {device} KV cache size | `{kv_cache_size_tokens:,} tokens` |",
        {"device": "GPU", "kv_cache_size_tokens": 215_040}),
    Row("markdown", "kv_cache_size", None, None, "`{device} KV cache size: {kv_cache_size_tokens:,}`",
        {"device": "GPU", "kv_cache_size_tokens": 215_040}),
    Row("19", "max_concurrency", "0.6.6", "0.7.3",
        "Maximum concurrency for {max_concurrency_len} tokens per request: {max_concurrency:.2f}x",
        {"max_concurrency_len": 32_768, "max_concurrency": 6.56}, file="executor_base.py"),
    Row("19", "max_concurrency", "0.8.0", "0.27.1",
        "Maximum concurrency for {max_concurrency_len:,} tokens per request: {max_concurrency:.2f}x",
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
        "Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any "
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

IDENTITY: Final = (
    Row("33", "max_model_len", "0.9.2", None, "Using max model len {max_model_len}",
        {"max_model_len": 32_768}, file="model.py"),
    Row("33", "max_num_batched_tokens", "0.6.6", None,
        "Chunked prefill is enabled with max_num_batched_tokens={max_num_batched_tokens}.",
        {"max_num_batched_tokens": 8_192}, file="scheduler.py"),
    Row("33", "encoder_cache", "0.7.3", None,
        "Encoder cache will be initialized with a budget of {encoder_cache_tokens} tokens, and "
        "profiled with {encoder_items} {word} items of the maximum feature size.",
        {"encoder_cache_tokens": 8_192, "encoder_items": 2, "word": "image"},
        file="gpu_model_runner.py"),
    Row("33", "kv_cache_layout", "0.14.1", "0.28.0",
        "Using {layout} KV cache layout for {word} backend.", {"layout": "HND", "word": "FLASHINFER"},
        file="selector.py"),
    Row("33", "kv_cache_layout", "0.29.0", None, "Using {layout} KV cache layout.",
        {"layout": "NHD"}, file="utils.py"),
    Row("dtype", "kv_cache_dtype", "0.6.6", None,
        "Using {word} data type to store kv cache. It reduces the GPU memory footprint and boosts "
        "the performance.", {"word": "fp8_e4m3"}, file="cache.py"),
    Row("format", "kv_cache_format", "0.11.2", None,
        "Using DeepSeek's {word} KV cache format.", {"word": "fp8_ds_mla"}, file="mla.py"),
    Row("v2", "v2_model_runner", "0.22.1", None, "Using V2 Model Runner"),
    Row("async", "async_scheduling", "0.14.1", None, "Asynchronous scheduling is enabled.",
        file="vllm.py"),
    Row("mamba", "mamba_cache_mode", "0.15.1", None,
        "Mamba cache mode is set to '{mode}' for OurHybridForCausalLM by default when prefix caching "
        "is enabled", {"mode": "align"}, level="WARNING", file="config.py"),
    Row("architecture", "architecture", "0.10.0", None, "Resolved architecture: {architecture}",
        {"architecture": "OurModelForCausalLM"}, file="model.py"),
    Row("platform", "platform", "0.7.3", None, "Automatically detected platform {platform}.",
        {"platform": "cuda"}, file="__init__.py"),
    Row("card", "gpu_name", "0.6.6", None,
        "Using configuration from configs/E=128,N=768,device_name={gpu_name}.json for MoE layer.",
        {"gpu_name": "NVIDIA_H200"}, file="fused_moe.py"),
    Row("card", "gpu_name", None, None, "GPU 0: {gpu_name} (UUID: GPU-00)",
        {"gpu_name": "NVIDIA L40S"}),
    Row("card", "gpu_name", None, None, "|   0  {gpu_name}      On  | 00000000:01:00.0 Off |",
        {"gpu_name": "NVIDIA L40S"}),
    Row("version", "vllm_version", "0.6.6", "0.13.0", "vLLM API server version {vllm_version}",
        {"vllm_version": "0.9.2"}, file="api_server.py"),
    Row("version", "vllm_version", "0.14.1", None,
        " \u2584\u2584 \u2584\u2588 \u2588     \u2588     \u2588 \u2580\u2584\u2580 \u2588  version "
        "{vllm_version}", {"vllm_version": "0.24.1rc2.dev7+gabc"}, file="api_utils.py"),
    Row("version", "vllm_version", None, None, "vLLM Version: {vllm_version}",
        {"vllm_version": "0.11.0"}),
    Row("model", "model_name", "0.14.1", None,
        "  \u2588\u2584\u2588\u2580 \u2588     \u2588     \u2588     \u2588  model   {model}",
        {"model": "our-org/our-model-FP8"}, file="api_utils.py"),
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
        "Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 3.0 tokens/s, "
        "Running: {num_requests_running} reqs, Waiting: {num_requests_waiting} reqs, {device} KV "
        "cache usage: {kv_cache_usage_percent:.1f}%, Prefix cache hit rate: "
        "{prefix_cache_hit_percent:.1f}%",
        {"num_requests_running": 7, "num_requests_waiting": 3, "device": "GPU",
         "kv_cache_usage_percent": 88.5, "prefix_cache_hit_percent": 41.0}, file="loggers.py"),
    Row("statistics", "statistics", "0.20.0", None,
        "Engine 001: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 3.0 tokens/s, "
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

FAILURES: Final = (
    Row("E1", "no_memory_for_kv_cache", "0.6.6", "0.12.0", _BLOCKED + "."),
    Row("E1", "no_memory_for_kv_cache", "0.13.0", "0.21.0", _BLOCKED + "." + _DOCS),
    Row("E1", "no_memory_for_kv_cache", "0.22.1", None,
        _BLOCKED + " (this flag also controls CPU memory reservation on the CPU backend, despite "
        "its name)." + _DOCS),
    Row("E2a", "kv_cache_too_small", "0.6.6", "0.10.2",
        "The model's max seq len ({max_model_len}) is larger than the maximum number of tokens that "
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
        "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
        "`max_model_len` when initializing the engine." + _DOCS, _NEED),
    Row("E2d", "kv_cache_too_small", "0.22.1", None,
        "To serve at least one request with the model's max seq len ({max_model_len}), "
        "({needed_gib} GiB " + _SMALL + "} GiB). Try increasing `gpu_memory_utilization` (which also "
        "controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing the "
        "engine." + _DOCS, _NEED),
    Row("E3", "free_memory_below_request", "0.9.2", "0.13.0",
        "Free memory on device ({free_memory_gib}/{total_memory_gib} GiB) on startup is less than "
        "desired GPU memory utilization ({gpu_memory_utilization}, {requested_memory_gib} GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        {"free_memory_gib": 30.02, "total_memory_gib": 47.4, "gpu_memory_utilization": 0.9,
         "requested_memory_gib": 42.66}),
    Row("E3", "free_memory_below_request", "0.14.1", None,
        "Free memory on device cuda:1 ({free_memory_gib}/{total_memory_gib} GiB) on startup is less "
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
        "CUDA out of memory occurred when warming up pooler (task=embed) with {dummy_requests} dummy "
        "requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing "
        "the engine.", {"dummy_requests": 256}),
    Row("E7", "out_of_memory", "0.6.6", None,
        "CUDA out of memory. Tried to allocate {tried_amount:.2f} MiB. GPU {gpu_index} has a total "
        "capacity of {total_memory_gib:.2f} GiB of which {free_amount:.2f} MiB is free. Including "
        "non-PyTorch memory, this process has {process_gib:.2f} GiB memory in use. Of the allocated "
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
        "Free memory on device cuda:0 ({free_memory_gib}/{total_memory_gib} GiB) on startup is less "
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
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free "
        "memory for weights, increasing --tensor-parallel-size, or using --quantization.",
        level="ERROR", file="gpu_model_runner.py"),
    Row("cuda", "cuda_error", "0.6.6", None, "CUDA error: {detail}",
        {"detail": "an illegal memory access was encountered"}),
    Row("engine", "engine_core_failed", "0.8.0", None,
        "Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"),
)  # fmt: skip

LINE_TABLE: Final = (
    *WEIGHTS, *PROFILE, *GRAPHS, *SUMMARY, *CACHE, *IDENTITY, *RUNNING, *FAILURES,
)  # fmt: skip


def row_for(kind: str, version: str, row: str | None = None) -> Row:
    """The first wording of a kind that a release prints. Raises LookupError where it prints none."""
    for each in LINE_TABLE:
        if (
            each.kind == kind
            and row in (None, each.row)
            and within(version, each.since, each.until)
        ):
            return each
    raise LookupError(f"{version} prints no {kind}")
