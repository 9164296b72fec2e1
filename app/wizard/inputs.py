"""The inputs of a sizing: name, kind and bounds, one row each, in the order links write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["text", "integer", "size", "length", "decimal", "flag", "object"]

MAX_CARDS: Final = 1024
# More than any known model has layers (126). Each stage is worked out in each cell of a matrix.
MAX_STAGES: Final = 128
MAX_REPLICAS: Final = 1000
MAX_TOKENS: Final = 100_000_000
MAX_COUNT: Final = 1_000_000_000
MAX_BYTES: Final = 2**50
MAX_GIB: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Input:
    """One input. Bounds are inclusive; None where the kind has none.

    `unsure` is True where "I am not sure" is an answer: the text `unsure` then stands for a
    documented default, which the result names as an assumption.
    """

    name: str
    kind: Kind
    minimum: float | None = None
    maximum: float | None = None
    unsure: bool = False


INPUTS: Final[tuple[Input, ...]] = (
    Input("model", "text"),
    Input("revision", "text"),
    Input("hf_config", "object"),
    Input("hf_quant_config", "object"),
    Input("assume_plain_decoder", "flag"),
    Input("checkpoint", "text", unsure=True),
    Input("gpu", "text", unsure=True),
    Input("gpu_total_memory_bytes", "size", 1, MAX_BYTES),
    Input("other_processes_gib", "decimal", 0, MAX_GIB),
    Input("vllm_version", "text"),
    Input("replicas", "integer", 1, MAX_REPLICAS),
    Input("server", "text"),
    Input("tensor_parallel_size", "integer", 1, MAX_CARDS, unsure=True),
    Input("pipeline_parallel_size", "integer", 1, MAX_STAGES),
    Input("data_parallel_size", "integer", 1, MAX_CARDS),
    Input("decode_context_parallel_size", "integer", 1, MAX_CARDS),
    Input("enable_expert_parallel", "flag"),
    Input("max_model_len", "length", 1, MAX_TOKENS, unsure=True),
    Input("kv_cache_dtype", "text", unsure=True),
    Input("block_size", "integer", 1, 2**20),
    Input("gpu_memory_utilization", "decimal", 0.01, 1),
    Input("kv_cache_memory_bytes", "size", 1, MAX_BYTES),
    Input("num_gpu_blocks_override", "integer", 1, MAX_COUNT),
    Input("max_num_batched_tokens", "size", 1, MAX_TOKENS),
    Input("max_num_seqs", "integer", 1, 1_000_000),
    Input("enforce_eager", "flag"),
    Input("enable_prefix_caching", "flag"),
    Input("async_scheduling", "flag"),
    Input("disable_hybrid_kv_cache_manager", "flag"),
    Input("mamba_cache_mode", "text"),
    Input("mamba_ssm_cache_dtype", "text"),
    Input("speculative_config", "object"),
    Input("dtype", "text"),
    Input("enable_chunked_prefill", "flag"),
    Input("cpu_offload_gb", "decimal", 0, MAX_GIB),
    Input("max_cudagraph_capture_size", "integer", 0, 1_000_000),
    Input("limit_mm_per_prompt", "object"),
    Input("language_model_only", "flag"),
    Input("enable_lora", "flag"),
    Input("max_loras", "integer", 1, 100_000),
    Input("max_lora_rank", "integer", 1, 100_000),
    Input("hf_overrides", "object"),
    Input("available_kv_cache_memory_bytes", "size", 1, MAX_BYTES),
    Input("measured_weights_gib", "decimal", 0, MAX_GIB),
    Input("measured_peak_activation_gib", "decimal", 0, MAX_GIB),
    Input("measured_non_torch_gib", "decimal", 0, MAX_GIB),
    Input("measured_cudagraph_gib", "decimal", 0, MAX_GIB),
    Input("measured_on", "object"),
    Input("peak_requests", "integer", 1, MAX_COUNT),
    Input("mean_request_tokens", "integer", 1, MAX_TOKENS),
    Input("p95_request_tokens", "integer", 1, MAX_TOKENS),
)
BY_NAME: Final = {each.name: each for each in INPUTS}
LAYOUT_INPUTS: Final = (
    "replicas",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
)
UNSURE: Final = "unsure"
FORMAT_KEYS: Final = ("v", "data", "spec")
RENAMED: Final = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dcp": "decode_context_parallel_size",
    "ep": "enable_expert_parallel",
    "context": "max_model_len",
    "quantization": "checkpoint",
    "version": "vllm_version",
}
