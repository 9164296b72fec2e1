"""Three observed starts that are hard to read, rebuilt in their release's exact wording.

The figures are those that were printed (tests of the catalogue name their sources); names of
models, machines and processes are our own.
"""

from typing import Final

_WORKERS: Final = range(8)


def _record(tag: str, file: str, text: str, level: str = "INFO") -> str:
    return f"({tag} pid=4711) {level} 09-04 11:00:12 [{file}:773] {text}"


# 0.27.1 and later: the printed activation holds the graph estimate, weights are "consumed", and
# the model's name is nobody's.
CONSUMED: Final = "\n".join([
    _record("APIServer", "api_utils.py", "vLLM API server version 0.27.1"),
    _record("APIServer", "api_utils.py",
            "non-default args: {'model': 'our-lab/Qwen3.8-Flash-Next-NVFP4', 'max_model_len': "
            "262144, 'gpu_memory_utilization': 0.97, 'max_num_seqs': 1, 'kv_offloading_size': "
            "20.0}"),
    _record("EngineCore", "gpu_model_runner.py",
            "Model loading took 78.47 GiB memory and 61.5 seconds"),
    _record("EngineCore", "gpu_worker.py", "Available KV cache memory: 8.64 GiB"),
    _record("EngineCore", "kv_cache_utils.py", "GPU KV cache size: 315,039 tokens"),
    _record("EngineCore", "kv_cache_utils.py",
            "Maximum concurrency for 262,144 tokens per request: 1.20x"),
    _record("EngineCore", "gpu_model_runner.py",
            "Graph capturing finished in 9 secs, took 0.28 GiB"),
    _record("EngineCore", "gpu_worker.py",
            "Free memory on device cuda:0 (94.41/94.97 GiB) on startup. Desired GPU memory "
            "utilization is (0.97, 92.12 GiB). Actual usage is 81.7 GiB for consumed memory "
            "(weights + non-torch), 1.78 GiB for peak activation, and 0.28 GiB for CUDAGraph "
            "memory. Replace gpu_memory_utilization config with `--kv-cache-memory=8820325233` "
            "(8.21 GiB) to fit into requested memory, or `--kv-cache-memory=11273977344` (10.5 "
            "GiB) to fully utilize gpu memory. Current kv cache memory in use is 8.64 GiB."),
    _record("EngineCore", "core.py",
            "init engine (profile, create kv cache, warmup model) took 88.1 s"),
])  # fmt: skip

# Eight ranks that interleave, tokens multiplied by context parallelism, a graph estimate that is
# not subtracted, and a release that is a build of its own.
EIGHT_RANKS: Final = "\n".join([
    _record("APIServer", "api_utils.py",
            "vLLM API server version 0.20.2rc1.dev249+our20260514"),
    _record("APIServer", "api_utils.py",
            "non-default args: {'model': 'our-lab/GLM-5.1-NVFP4-MTP', 'max_model_len': 202752, "
            "'gpu_memory_utilization': 0.82, 'kv_cache_dtype': 'fp8', 'tensor_parallel_size': 8, "
            "'decode_context_parallel_size': 8, 'max_num_batched_tokens': 8192, 'max_num_seqs': "
            "64, 'quantization': 'modelopt_fp4', 'speculative_config': {'method': 'mtp', "
            "'num_speculative_tokens': 3}}"),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "gpu_model_runner.py",
              f"Model loading took 56.62 GiB memory and {40 + rank}.25 seconds")
      for rank in _WORKERS),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "platforms.py",
              "Setting kv cache block size to 64 for DEEPSEEK_V32_INDEXER backend.")
      for rank in _WORKERS[:1]),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "gpu_model_runner.py",
              "Estimated CUDA graph memory: 6.84 GiB total") for rank in _WORKERS),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "gpu_worker.py",
              "CUDA graph memory profiling is disabled "
              "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). Consider lowering "
              "--gpu-memory-utilization from 0.8200 to 0.7480.", "WARNING")
      for rank in _WORKERS[:1]),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "gpu_worker.py",
              f"Available KV cache memory: {14.15 + (0.06 if rank else 0):.2f} GiB")
      for rank in _WORKERS),
    _record("EngineCore", "kv_cache_utils.py",
            "Multiplying the GPU KV cache size by the cp_world_size 8 as KV cache is sharded "
            "across it."),
    _record("EngineCore", "kv_cache_utils.py", "GPU KV cache size: 1,952,256 tokens"),
    _record("EngineCore", "kv_cache_utils.py",
            "Maximum concurrency for 202,752 tokens per request: 9.63x"),
    *(_record(f"Worker_TP{rank}_DCP{rank}", "gpu_model_runner.py",
              "Graph capturing finished in 31 secs, took 2.23 GiB") for rank in _WORKERS),
])  # fmt: skip

# No version, no card, no memory: blocks set by hand let a start through of which less than one
# request fits, on a hybrid whose blocks are as long as 4,128 tokens.
OVERRIDDEN: Final = "\n".join([
    "docker run --gpus all vllm serve Qwen/Qwen3.6-27B --max-model-len 205000 \\",
    "  --max-num-batched-tokens 4128 --num-gpu-blocks-override 50 \\",
    "  --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'",
    _record("EngineCore", "config.py",
            "Setting attention block size to 4128 tokens to ensure that attention page size is "
            ">= mamba page size."),
    _record("EngineCore", "config.py",
            "Padding mamba page size by 0.02% to ensure that mamba page size and attention page "
            "size are exactly equal."),
    _record("EngineCore", "kv_cache_utils.py",
            "Overriding num_gpu_blocks=65 with num_gpu_blocks_override=50"),
    _record("EngineCore", "kv_cache_utils.py", "GPU KV cache size: 206,400 tokens"),
    _record("EngineCore", "kv_cache_utils.py",
            "Maximum concurrency for 205,000 tokens per request: 0.77x"),
])  # fmt: skip
