"""What a vLLM release does: one row of facts, read from `data/vllm/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class BatchTier:
    """Defaults of `vllm serve` for cards with at least `min_memory_gib` (driver figure)."""

    min_memory_gib: int
    max_num_batched_tokens: int
    max_num_seqs: int
    excluded_architectures: tuple[str, ...] = ()
    excluded_compute_capabilities: tuple[str, ...] = ()
    excluded_name_parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One release of vLLM as far as sizing needs it. Compared by identity.

    version                        `0.32.0`
    gpu_memory_utilization         default share of the card
    batch_tiers                    largest first; the last has min_memory_gib 0
    tokens_rule                    `blocks`: num_blocks // groups x smallest block size;
                                   `concurrency`: int(concurrency x L)
    async_scheduling               default, doubles what is in flight where in_flight_counts_async
    in_flight_counts_async         sliding-window layers hold (pp + 1) x max_num_batched_tokens
    one_log_line                   both figures on one line
    log_names_platform             line starts with the platform's name instead of a fixed GPU
    null_block_in_fit_check        the start check leaves one block out
    group_tolerance                1.5, 1.25, or 1.0 for none: when the largest bucket sets the group size
    yarn_factor_applied            derived length = original x factor (else taken as scaled)
    hybrid_prefix_caching          prefix caching is on by default for hybrids
    mamba_blocks                   (none, align) blocks of a request per mamba group, without drafts
    mamba2_extra_block             Mamba-2 layers take one more in align mode
    gdn_extra_block                gated delta net layers too (0.33)
    gdn_block_alignment            block size is a multiple of this (0.33: 64), 1 for none
    kv_cache_dtypes                values that `--kv-cache-dtype` accepts
    nvfp4_kv_beyond_sm100          NVFP4 KV cache also on SM8x, SM9x and SM12x
    auto_max_model_len             `auto` and `-1` are accepted
    cudagraph_estimate_subtracted  graph estimate leaves the budget by default
    default_model_runner           `V1` or `V2`
    nccl_charged                   NCCL and context growth count against the budget
    memory_estimate                whether a memory estimate is offered (from 0.9.2)
    errors                         vLLM's own texts with named fields, by reason code
    observed                       whether starts of this release were observed (memory estimate)
    """

    version: str
    gpu_memory_utilization: float
    batch_tiers: tuple[BatchTier, ...]
    tokens_rule: Literal["blocks", "concurrency"]
    async_scheduling: bool
    in_flight_counts_async: bool
    one_log_line: bool
    log_names_platform: bool
    null_block_in_fit_check: bool
    group_tolerance: float
    yarn_factor_applied: bool
    hybrid_prefix_caching: bool
    mamba_blocks: tuple[int, int]
    mamba2_extra_block: bool
    gdn_extra_block: bool
    gdn_block_alignment: int
    kv_cache_dtypes: frozenset[str]
    nvfp4_kv_beyond_sm100: bool
    auto_max_model_len: bool
    cudagraph_estimate_subtracted: bool
    default_model_runner: Literal["V1", "V2"]
    nccl_charged: bool
    memory_estimate: bool
    errors: tuple[tuple[str, str], ...]
    observed: bool = False

    @property
    def number(self) -> tuple[int, ...]:
        """Version as integers, for comparisons."""
        return tuple(int(part) for part in self.version.split("."))
