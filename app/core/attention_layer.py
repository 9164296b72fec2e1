"""What an attention backend can do, and what decides whether it serves a layer."""

from __future__ import annotations

from dataclasses import dataclass

Capability = tuple[int, int]
AMPERE_AND_ADA, HOPPER, BLACKWELL, THOR, CONSUMER_BLACKWELL = 8, 9, 10, 11, 12


@dataclass(frozen=True, slots=True)
class AttentionBackend:
    """What one backend can do.

    block_sizes        a block must be a multiple of one of them
    head_sizes         empty for any within the bounds
    majors             compute capabilities, empty for any within the bounds
    quantized_majors   those that read quantised caches, empty for all
    sink_majors        those that read attention sinks, where `sinks` names the rule of that name
    sinks, mm_prefix   `yes`, `no` or the name of a rule
    qk_nope_head_dims  what a rule of the backend allows
    rules              names of combinations that are refused
    """

    name: str
    kv_cache_dtypes: frozenset[str]
    block_sizes: tuple[int, ...]
    model_dtypes: frozenset[str] = frozenset({"float16", "bfloat16"})
    mla: bool = False
    sparse: bool = False
    head_sizes: tuple[int, ...] = ()
    head_size_multiple: int = 1
    min_head_size: int = 1
    max_head_size: int = 2**20
    majors: tuple[int, ...] = ()
    quantized_majors: tuple[int, ...] = ()
    sink_majors: tuple[int, ...] = ()
    qk_nope_head_dims: tuple[int, ...] = ()
    min_capability: Capability = (0, 0)
    max_capability: Capability = (99, 9)
    sinks: str = "no"
    mm_prefix: str = "no"
    sliding_window: bool = False
    encoder_decoder: bool = False
    dcp: bool = False
    rules: tuple[str, ...] = ()

    def supports_block_size(self, block_size: int) -> bool:
        """True where blocks of that size can be split into the kernel's."""
        return any(block_size % size == 0 for size in self.block_sizes)


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """What decides about the backend of a layer.

    `flash_attention_version` overrides the version that the card and head size would get.
    """

    capability: Capability
    head_size: int
    dtype: str
    kv_cache_dtype: str
    block_size: int | None
    use_mla: bool = False
    has_sink: bool = False
    use_sparse: bool = False
    use_mm_prefix: bool = False
    has_sliding_window: bool = False
    use_dcp: bool = False
    encoder_decoder: bool = False
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    has_index_topk: bool = False
    num_heads: int = 0
    nvfp4_beyond_sm100: bool = True
    flash_attention_version: int | None = None
