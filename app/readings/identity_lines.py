"""Lines that say which server it is: release, model, card, resolved lengths and types.

Wordings and release bounds: the literals of vLLM's wheels 0.6.6 to 0.33.0.
"""

from __future__ import annotations

from typing import Final

from app.readings.line_kind import LineKind, form, line_kind

IDENTITY_LINES: Final[tuple[LineKind, ...]] = (
    line_kind(
        "vllm_version",
        ("vLLM API server version ", "vLLM Version: ", "\u2588  version "),
        form("vLLM API server version {vllm_version}"),
        form("vLLM Version: {vllm_version}"),
        form("\u2588 version {vllm_version}", since="0.14.1"),
    ),
    line_kind("model_name", "\u2588  model ", form("\u2588 model {model}", since="0.14.1")),
    line_kind(
        "architecture",
        "Resolved architecture: ",
        form("Resolved architecture: {architecture}", since="0.10.0"),
    ),
    line_kind(
        "platform",
        "Automatically detected platform ",
        form("Automatically detected platform {platform}", since="0.7.0"),
    ),
    line_kind(
        "gpu_name",
        ("device_name=", "GPU 0: ", "|   0  NVIDIA "),
        form("device_name={gpu_name}"),
        form("GPU 0: {gpu_name}"),
        form("| 0 {gpu_name}"),
    ),
    line_kind(
        "max_model_len",
        "Using max model len ",
        form("Using max model len {max_model_len}", since="0.9.2"),
    ),
    line_kind(
        "max_num_batched_tokens",
        "Chunked prefill is enabled with ",
        form("Chunked prefill is enabled with max_num_batched_tokens={max_num_batched_tokens}"),
    ),
    line_kind(
        "kv_cache_dtype",
        " data type to store kv cache",
        form("Using {word} data type to store kv cache"),
        lead="Using ",
    ),
    line_kind(
        "kv_cache_format",
        " KV cache format",
        form("Using [DeepSeek's ]{word} KV cache format", since="0.11.0"),
        lead="Using ",
    ),
    line_kind(
        "kv_cache_layout",
        " KV cache layout",
        form("Using {layout} KV cache layout for {word} backend", since="0.14.1", until="0.28.0"),
        form("Using {layout} KV cache layout", since="0.14.1"),
        lead="Using ",
    ),
    line_kind("v2_model_runner", "Using V2 Model Runner", form("Using V2 Model Runner")),
    line_kind(
        "async_scheduling",
        "Asynchronous scheduling is enabled",
        form("Asynchronous scheduling is enabled"),
    ),
    line_kind(
        "encoder_cache",
        "Encoder cache will be initialized with a budget of ",
        form(
            "Encoder cache will be initialized with a budget of {encoder_cache_tokens} tokens, and "
            "profiled with {encoder_items} {word} items",
            since="0.7.3",
        ),
    ),
    line_kind(
        "mamba_cache_mode",
        "Mamba cache mode is set to ",
        form("Mamba cache mode is set to '{mode}'", since="0.15.1"),
    ),
)
