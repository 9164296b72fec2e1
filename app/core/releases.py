"""What a vLLM release does: one row of facts, read from `data/vllm/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core.backends import BackendBook
from app.core.coefficients import MemoryCoefficients


@dataclass(frozen=True, slots=True)
class BatchTier:
    """Defaults of `vllm serve` for cards with at least `min_memory_gib` (driver figure).

    A card whose lower-case name contains one of `excluded_name_parts`, or whose compute
    capability ("12.1") is listed, falls through to the next tier.
    """

    min_memory_gib: int
    max_num_batched_tokens: int
    max_num_seqs: int
    excluded_compute_capabilities: tuple[str, ...] = ()
    excluded_name_parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One release of vLLM as far as sizing needs it. Compared by identity.

    version                        `0.32.0`
    gpu_memory_utilization         default share of the card
    batch_tiers                    largest first; the last has min_memory_gib 0
    tokens_rule                    `slots`: blocks x block size, concurrency is that / L;
                                   `blocks`: num_blocks // groups x smallest block size;
                                   `concurrency`: int(concurrency x L)
    async_scheduling               on by default: two batches are in flight
    in_flight_counts_async         sliding-window layers hold every batch in flight, not one
    log_formats                    the literal lines of the start log, with named fields
    null_block_in_fit_check        the start check leaves one block out
    group_tolerance                1.5, 1.25, or 1.0 for none: when the largest bucket sets the
                                   group size
    groups_deal_layers_out         layers of a kind are dealt out to its groups, not cut into runs
    hybrid_manager                 windows get groups of their own, else count as full attention
    hybrid_chunked_local           chunked attention too
    uniform_type_groups            full attention with different heads shares a group, else refused
    unifies_page_sizes             layers with smaller pages get larger blocks, else refused
    pads_attention_pages           pages that do not divide the largest are padded, else refused
    packed_planner                 how DeepSeek-V4's mixed pages share a block: `tuples`, `slots`,
                                   `overlay`, `types`
    override_in_fit_check          blocks given by hand count in the start check
    forced_block_sizes             block size that a backend gets (others 16); none: by its kernels
    hybrid_alignment               multiples that blocks of hybrids keep to: attention, its heads of
                                   256 on SM100, MLA; 0 where the kernels decide
    packed_blocks_hold_wide_pages  blocks of packed dtypes hold the page of a layer left unquantised
    concurrency_counts_bytes       where groups differ, a request's blocks are counted by bytes
    packs_whole_kernel_pages       blocks of DeepSeek-V4 are whole pages of the kernels of all kinds
    window_blocks_follow_kernel    blocks of windows are the kernel's largest that fit the model's
    fit_check_counts_padding       the start check counts groups with their padding, else layers
    yarn_factor_applied            derived length = original x factor (else taken as scaled)
    rope_always                    a length is a float even without a rope block, and is printed so
    hybrid_prefix_caching          prefix caching is on by default for hybrids
    mamba_caching                  mode of states under prefix caching: `none` (no caching), `all`
                                   (no caching where a model cannot), `all_or_align`, `align`
                                   (`all` where asked for), `align_only`
    mamba_blocks                   (none, align) blocks of a request per mamba group, without drafts
    mamba_draft_blocks             draft tokens add a state block each
    mamba_all_draft_blocks         and do so where every block keeps a state
    mamba2_extra_block             Mamba-2 layers take one more in align mode
    kda_extra_block                KDA with a bounded gate too
    state_dtype_from_config        the config decides about the dtype of recurrent states
    gdn_extra_block                gated delta net layers too (0.33)
    gdn_block_alignment            block size is a multiple of this (0.33: 64), 1 for none
    kv_cache_dtypes                values that `--kv-cache-dtype` accepts
    sparse_mla_packed_dtypes       dtypes that sparse MLA stores as fp8_ds_mla whatever the backend
    deepseek_v4_auto_dtype         `auto` is FP8 for DeepSeek-V4, else refused
    deepseek_v4_pipelines          DeepSeek-V4 takes pipeline stages
    flat_cache_backends            backends that read the cache as rows: a block is whole rows
    fp8_kv_by_default_sm100        model types whose cache is FP8 by default on the SM100 family
    min_batched_tokens             by start of model type: default for models whose images attend
                                   in both directions is at least this
    nvfp4_kv_beyond_sm100          NVFP4 KV cache also on SM8x, SM9x and SM12x
    auto_max_model_len             `auto` and `-1` are accepted
    cudagraph_estimate_subtracted  graph estimate leaves the budget by default
    max_cudagraph_capture_size     largest graph captured by default
    max_cudagraph_capture_size_sm100  the same on the SM100 family
    capture_step_above_256         distance of captured batch sizes from 256 on
    capture_counts_drafts          whole batches with draft tokens are captured
    default_model_runner           `V1` or `V2`
    v2_dense_models                where that is V1: dense text models run on V2 all the same
    v2_architectures               and so do these
    checkpoint_kv_cache_scheme     `--kv-cache-dtype auto` takes what the checkpoint declares
    nccl_charged                   NCCL and context growth count against the budget
    memory_estimate                whether a memory estimate is offered (from 0.9.2)
    weight_blocks_split            while weights load, the allocator splits blocks of any size
                                   (from 0.21.0 not those above 20 MiB)
    fp8_expert_blocks_refined      scales of FP8 experts get finer blocks where a rank's share holds
                                   no whole block (before 0.29.0 the start is refused)
    towers_on_first_stage          later pipeline stages hold no vision or audio tower
    expert_least_share             experts whose class asks for it keep a least share on every rank
    mrope_positions_quadrupled     M-RoPE's table has four times the positions (0.32.0: only where
                                   the model asks for it)
    sm100_mxfp4_expert_multiple    a rank's share of an MXFP4 expert is padded to a multiple of this
                                   on the SM100 family (FlashInfer's TRT-LLM kernel)
    sm100_bf16_expert_multiple     the same for experts in 16 bit, 1 for none
    quantization_min_capability    smallest compute capability (80 for 8.0) of each method a
                                   checkpoint may be stored in
    errors                         vLLM's own texts with named fields, by text key; a check that
                                   came later has no text before
    changes                        names of the facts that moved against the release before
    sources                        where each of those is from, in the same order
    memory                         coefficients of the memory estimate, None where none is offered
    backends                       attention backends on NVIDIA cards
    """

    version: str
    gpu_memory_utilization: float
    batch_tiers: tuple[BatchTier, ...]
    tokens_rule: Literal["slots", "blocks", "concurrency"]
    async_scheduling: bool
    in_flight_counts_async: bool
    log_formats: tuple[str, ...]
    null_block_in_fit_check: bool
    group_tolerance: float
    groups_deal_layers_out: bool
    hybrid_manager: bool
    hybrid_chunked_local: bool
    uniform_type_groups: bool
    unifies_page_sizes: bool
    pads_attention_pages: bool
    packed_planner: Literal["tuples", "slots", "overlay", "types"]
    override_in_fit_check: bool
    forced_block_sizes: tuple[tuple[str, int], ...]
    hybrid_alignment: tuple[int, int, int]
    packed_blocks_hold_wide_pages: bool
    concurrency_counts_bytes: bool
    packs_whole_kernel_pages: bool
    window_blocks_follow_kernel: bool
    fit_check_counts_padding: bool
    yarn_factor_applied: bool
    rope_always: bool
    hybrid_prefix_caching: bool
    mamba_caching: Literal["none", "all", "all_or_align", "align", "align_only"]
    mamba_blocks: tuple[int, int]
    mamba_draft_blocks: bool
    mamba_all_draft_blocks: bool
    mamba2_extra_block: bool
    kda_extra_block: bool
    state_dtype_from_config: bool
    gdn_extra_block: bool
    gdn_block_alignment: int
    kv_cache_dtypes: frozenset[str]
    sparse_mla_packed_dtypes: frozenset[str]
    deepseek_v4_auto_dtype: bool
    deepseek_v4_pipelines: bool
    flat_cache_backends: frozenset[str]
    fp8_kv_by_default_sm100: frozenset[str]
    min_batched_tokens: tuple[tuple[str, int], ...]
    nvfp4_kv_beyond_sm100: bool
    auto_max_model_len: bool
    cudagraph_estimate_subtracted: bool
    max_cudagraph_capture_size: int
    max_cudagraph_capture_size_sm100: int
    capture_step_above_256: int
    capture_counts_drafts: bool
    default_model_runner: Literal["V1", "V2"]
    v2_dense_models: bool
    v2_architectures: frozenset[str]
    checkpoint_kv_cache_scheme: bool
    nccl_charged: bool
    memory_estimate: bool
    weight_blocks_split: bool
    fp8_expert_blocks_refined: bool
    towers_on_first_stage: bool
    expert_least_share: bool
    mrope_positions_quadrupled: bool
    sm100_mxfp4_expert_multiple: int
    sm100_bf16_expert_multiple: int
    quantization_min_capability: tuple[tuple[str, int], ...]
    errors: tuple[tuple[str, str], ...]
    changes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    memory: MemoryCoefficients | None = None
    backends: BackendBook | None = None

    @property
    def number(self) -> tuple[int, ...]:
        """Version as integers, for comparisons."""
        return tuple(int(part) for part in self.version.split("."))

    def error(self, key: str) -> str:
        """vLLM's own text for `key` with named fields; empty where it is unknown or empty."""
        return dict(self.errors).get(key, "")
