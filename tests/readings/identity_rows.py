"""Lines about the release, the model and what vLLM resolved."""

from typing import Final

from tests.readings.line_row import Row

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
        "Using {layout} KV cache layout for {word} backend.",
        {"layout": "HND", "word": "FLASHINFER"}, file="selector.py"),
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
        "Mamba cache mode is set to '{mode}' for OurHybridForCausalLM by default when prefix "
        "caching "
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
        " \u2584\u2584 \u2584\u2588 \u2588     \u2588     \u2588 \u2580\u2584\u2580 \u2588  "
        "version "
        "{vllm_version}", {"vllm_version": "0.24.1rc2.dev7+gabc"}, file="api_utils.py"),
    Row("version", "vllm_version", None, None, "vLLM Version: {vllm_version}",
        {"vllm_version": "0.11.0"}),
    Row("model", "model_name", "0.14.1", None,
        "  \u2588\u2584\u2588\u2580 \u2588     \u2588     \u2588     \u2588  model   {model}",
        {"model": "our-org/our-model-FP8"}, file="api_utils.py"),
)  # fmt: skip
