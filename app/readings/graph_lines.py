"""Lines about CUDA graphs, and the memory summary that vLLM prints once they are captured.

Every GiB is 2**30 bytes. Wordings and release bounds: the literals of vLLM's wheels 0.6.6 to
0.33.0.
"""

from __future__ import annotations

from typing import Final

from app.readings.line_kind import LineKind, form, line_kind

GRAPH_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "cudagraph_profiling",
        "Profiling CUDA graph memory: ",
        form(
            "Profiling CUDA graph memory: [PIECEWISE={piecewise_graphs} (largest="
            "{piecewise_largest})][, ][FULL={full_graphs} (largest={full_largest})]",
            since="0.18.0",
        ),
    ),
    line_kind(
        "cudagraph_estimate",
        "Estimated CUDA graph memory: ",
        form("Estimated CUDA graph memory: {cudagraph_estimate_gib} GiB total", since="0.18.0"),
    ),
    line_kind(
        "cudagraph_estimate_part",
        (
            "Estimated PIECEWISE CUDA graph",
            "Estimated FULL CUDA graph",
            "Estimated encoder CUDA graph",
        ),
        form(
            "Estimated {mode} CUDA graph memory: {first_capture_mib} MiB first-capture + "
            "({graphs}-1) \u00d7 {per_graph_mib} MiB per-graph",
            since="0.18.0",
        ),
        form(
            "Estimated {mode} CUDA graph memory: {first_capture_mib} MiB for {graphs} graphs",
            since="0.23.0",
        ),
    ),
    line_kind(
        "cudagraph_profiling_enabled",
        "CUDA graph memory profiling is enabled ",
        form(
            "CUDA graph memory profiling is enabled (default since v0.21.0). The current "
            "--gpu-memory-utilization={gpu_memory_utilization} is equivalent to "
            "--gpu-memory-utilization={equivalent_gpu_memory_utilization} without CUDA graph "
            "memory profiling. To maintain the same effective KV cache size as before, increase "
            "--gpu-memory-utilization to {suggested_gpu_memory_utilization}",
            since="0.20.0",
        ),
        form(
            "CUDA graph memory profiling is enabled "
            "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1). This will become the default in v0.19. "
            "The current --gpu-memory-utilization={gpu_memory_utilization} is equivalent to "
            "--gpu-memory-utilization={equivalent_gpu_memory_utilization} without CUDA graph "
            "memory profiling. To maintain the same effective KV cache size as before, increase "
            "--gpu-memory-utilization to {suggested_gpu_memory_utilization}",
            since="0.18.0",
            until="0.19.1",
        ),
    ),
    line_kind(
        "cudagraph_profiling_disabled",
        (
            "CUDA graph memory profiling is disabled ",
            "CUDA graph memory profiling will be enabled ",
        ),
        form(
            "CUDA graph memory profiling is disabled ...from {gpu_memory_utilization} to "
            "{suggested_gpu_memory_utilization}",
            since="0.20.0",
        ),
        form("CUDA graph memory profiling is disabled", since="0.20.0"),
        form(
            "CUDA graph memory profiling will be enabled by default ...from "
            "{gpu_memory_utilization} to {suggested_gpu_memory_utilization}",
            since="0.18.0",
            until="0.19.1",
        ),
    ),
    line_kind(
        "graph_capture",
        "Graph capturing finished in ",
        form("Graph capturing finished in {capture_seconds} secs, took {cudagraph_gib} GiB"),
        form("Graph capturing finished in {capture_seconds} secs"),
    ),
    line_kind(
        "cudagraph_pool",
        "CUDA graph pool memory: ",
        form(
            "CUDA graph pool memory: {cudagraph_gib} GiB (actual), {cudagraph_estimate_gib} GiB "
            "(estimated), difference: {difference_gib} GiB ({difference_percent}%)",
            since="0.18.0",
        ),
    ),
)

# Printed after graph capture, as one long record that terminals like to wrap: each piece is found
# on its own and pieces of one record are merged.
SUMMARY_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "memory_summary",
        "Free memory on device",
        form(
            "Free memory on device[ {device}] ({free_memory_gib}/{total_memory_gib} GiB) on "
            "startup. Desired GPU memory utilization is ({gpu_memory_utilization}, "
            "{requested_memory_gib} GiB)",
            since="0.10.2",
        ),
        form(
            "Free memory on device[ {device}] ({free_memory_gib}/{total_memory_gib} GiB) on "
            "startup.",
            since="0.10.2",
        ),
        merge=True,
    ),
    line_kind(
        "memory_summary",
        "Desired GPU memory utilization is ",
        form(
            "Desired GPU memory utilization is ({gpu_memory_utilization}, {requested_memory_gib} "
            "GiB)",
            since="0.10.2",
        ),
        merge=True,
    ),
    line_kind(
        "memory_summary",
        "Actual usage is ",
        form(
            "Actual usage is {weights_gib} GiB for weight, {peak_activation_gib} GiB for peak "
            "activation, {non_torch_gib} GiB for non-torch[ memory], and {cudagraph_gib} GiB for "
            "CUDAGraph memory",
            since="0.10.2",
            until="0.26.0",
        ),
        form(
            "Actual usage is {consumed_gib} GiB for consumed memory (weights + non-torch), "
            "{peak_activation_printed_gib} GiB for peak activation, and {cudagraph_gib} GiB for "
            "CUDAGraph memory",
            since="0.27.1",
        ),
        merge=True,
    ),
    line_kind(
        "memory_summary",
        "Replace gpu_memory_utilization config with ",
        form(
            "Replace gpu_memory_utilization config with `--kv-cache-memory[-bytes]="
            "{suggested_kv_cache_memory_bytes}`[ ({suggested_gib} GiB)] to fit into requested "
            "memory[, or `--kv-cache-memory[-bytes]={max_kv_cache_memory_bytes}`[ ({max_gib} GiB)] "
            "to fully utilize gpu memory]",
            since="0.10.2",
        ),
        merge=True,
    ),
    line_kind(
        "memory_summary",
        "Current kv cache memory in use is ",
        form("Current kv cache memory in use is {kv_cache_in_use_gib} GiB", since="0.11.0"),
        form(
            "Current kv cache memory in use is {kv_cache_in_use_bytes} bytes",
            since="0.10.2",
            until="0.10.2",
        ),
        merge=True,
    ),
)
