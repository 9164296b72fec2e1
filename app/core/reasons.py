"""Why something does not work: a code and the numbers that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReasonCode = Literal[
    "kv_cache_too_small",
    "no_memory_for_kv_cache",
    "weights_do_not_fit",
    "free_memory_below_request",
    "heads_not_divisible",
    "kv_dtype_not_supported",
    "context_too_long",
    "dcp_not_supported",
    "mig_not_joined",
    "expert_split_not_supported",
    "mamba_blocks_below_max_num_seqs",
    "quantization_not_supported",
    "architecture_unknown",
    "gpu_memory_unknown",
    "refused_by_vllm",
]
Number = int | float | str


@dataclass(frozen=True, slots=True)
class Reason:
    """A start that vLLM refuses.

    `numbers` are what the explanation names (`*_bytes` in bytes). `vllm_error` is the exact text
    that release raises, filled in from the release's row; empty where its text is empty or unknown.
    `estimated_max_model_len` is the longest length that fits, as vLLM's own search finds it.
    """

    code: ReasonCode
    numbers: tuple[tuple[str, Number], ...] = ()
    vllm_error: str = ""
    estimated_max_model_len: int | None = None


class Refusal(Exception):  # noqa: N818 - a refusal is an answer, not a fault
    """Raised inside the core when vLLM would refuse; `size()` turns it into a result."""

    def __init__(self, reason: Reason) -> None:
        """Carry the reason to `size()`."""
        super().__init__(reason.code)
        self.reason = reason
