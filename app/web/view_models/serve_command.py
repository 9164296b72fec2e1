"""The `vllm serve` command of a sizing, as a shell reads it."""

from __future__ import annotations

import shlex
from typing import Final

from app.core.units import AUTO_MAX_MODEL_LEN
from app.wizard.answers import Answers
from app.wizard.permalink import text_of

# In the order people read a command: how it is split, how long, how the cache is kept, the rest.
FLAGS: Final = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "max_model_len",
    "kv_cache_dtype",
    "block_size",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "num_gpu_blocks_override",
    "max_num_batched_tokens",
    "max_num_seqs",
    "enforce_eager",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "async_scheduling",
    "disable_hybrid_kv_cache_manager",
    "mamba_cache_mode",
    "mamba_ssm_cache_dtype",
    "speculative_config",
    "dtype",
    "cpu_offload_gb",
    "max_cudagraph_capture_size",
    "limit_mm_per_prompt",
    "language_model_only",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
    "hf_overrides",
)
_DEFAULTS: Final = Answers()


def serve_command(hf_id: str, answers: Answers) -> str:
    """Write the command for one copy: the checkpoint, then every flag that was chosen.

    One flag a line. A flag left at its default is left out, as vLLM would choose the same.
    """
    parts = [f"vllm serve {shlex.quote(hf_id)}"]
    for name in FLAGS:
        value = getattr(answers, name)
        if value is not None and value != getattr(_DEFAULTS, name):
            parts.append(_flag(name, value))
    return " \\\n  ".join(parts)


def _flag(name: str, value: object) -> str:
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return flag
    if value is False:
        return flag.replace("--", "--no-", 1)
    text = "auto" if name == "max_model_len" and value == AUTO_MAX_MODEL_LEN else text_of(value)
    return f"{flag} {shlex.quote(text)}"
