"""vLLM's engine arguments: as given, and resolved with a release's defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class SpeculativeConfig:
    """`--speculative-config` as far as it changes memory: method and draft tokens."""

    method: str
    num_speculative_tokens: int


@dataclass(frozen=True, slots=True)
class EngineArgs:
    """What the person set. None means: vLLM's default for that release, card and model."""

    max_model_len: int | None = None
    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    async_scheduling: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    mamba_cache_mode: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    speculative_config: SpeculativeConfig | None = None
    dtype: str = "auto"
    enable_chunked_prefill: bool | None = None
    cpu_offload_gb: float = 0.0
    max_cudagraph_capture_size: int | None = None
    limit_mm_per_prompt: tuple[tuple[str, int], ...] | None = None
    language_model_only: bool = False
    enable_lora: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16

    def with_flag(self, flag: str, value: object) -> EngineArgs:
        """Copy with one flag set; `flag` is a field name. Raises TypeError for another."""
        changes: dict[str, Any] = {flag: value}
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ResolvedEngineArgs:
    """What vLLM would run with.

    `cache_dtype` is the dtype of the KV cache after `auto` was resolved with the checkpoint's own
    scheme (`auto` stays where it means the model's dtype). `max_in_flight_tokens` is what
    sliding-window groups add. `auto_fit` is True when max_model_len is still to be reduced to what
    fits. `draft_layers` counts the layers that a draft adds to the cache.
    """

    max_model_len: int
    derived_max_model_len: int
    auto_fit: bool
    dtype: str
    cache_dtype: str
    user_block_size: int | None
    gpu_memory_utilization: float
    kv_cache_memory_bytes: int | None
    num_gpu_blocks_override: int | None
    max_num_batched_tokens: int
    max_num_seqs: int
    max_in_flight_tokens: int
    enforce_eager: bool
    enable_prefix_caching: bool
    async_scheduling: bool
    disable_hybrid_kv_cache_manager: bool
    mamba_cache_mode: str
    mamba_ssm_cache_dtype: str
    num_speculative_tokens: int
    speculative_method: str | None
    draft_layers: int
    enable_chunked_prefill: bool
    cpu_offload_gb: float
    cudagraph_capture_sizes: int
    model_runner: str
    language_model_only: bool
    enable_lora: bool
    max_loras: int
    max_lora_rank: int
    limit_mm_per_prompt: tuple[tuple[str, int], ...] | None = None

    @property
    def stored_cache_dtype(self) -> str:
        """What cached tokens are stored in: the model's dtype where `cache_dtype` stays `auto`."""
        return self.dtype if self.cache_dtype == "auto" else self.cache_dtype
