"""Answers as engine arguments: checks the names vLLM would not parse, reads the JSON objects."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, TypeGuard

from app.core.engine import EngineArgs, SpeculativeConfig
from app.wizard.answers import Answers, Problem, nearest_name

# Two have a second name. Source: vllm/utils/torch_utils.py STR_DTYPE_TO_TORCH_DTYPE
DTYPES: Final = {
    "auto": "auto",
    "half": "float16",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "float32": "float32",
}
MAMBA_CACHE_MODES: Final = ("none", "align", "all")
MAMBA_SSM_CACHE_DTYPES: Final = ("auto", "float32", "float16", "bfloat16")
MODALITIES: Final = ("image", "video", "audio", "vision_chunk")
MAX_SPECULATIVE_TOKENS: Final = 1024
MAX_ITEMS_PER_PROMPT: Final = 1_000_000
_COPIED: Final = (
    "max_model_len", "block_size", "gpu_memory_utilization", "kv_cache_memory_bytes",
    "num_gpu_blocks_override", "max_num_batched_tokens", "max_num_seqs", "enforce_eager",
    "enable_prefix_caching", "async_scheduling", "disable_hybrid_kv_cache_manager",
    "enable_chunked_prefill", "cpu_offload_gb", "max_cudagraph_capture_size",
    "language_model_only", "enable_lora", "max_loras", "max_lora_rank",
)  # fmt: skip


def read_engine_args(
    answers: Answers, kv_cache_dtypes: Collection[str]
) -> tuple[EngineArgs, tuple[Problem, ...]]:
    """Return the engine arguments and what is wrong with them.

    `kv_cache_dtypes` are the values that any known release accepts; whether the selected one does
    is the core's answer. A field with a problem keeps vLLM's default.
    """
    problems: list[Problem] = []

    def choice(name: str, known: Collection[str]) -> str | None:
        given = getattr(answers, name)
        if given is None or given.lower() in known:
            return None if given is None else given.lower()
        nearest = nearest_name(given, sorted(known))
        numbers = (("nearest", nearest), ("known", ", ".join(sorted(known))))
        problems.append(Problem("unknown_value", name, given, numbers))
        return None

    values = {name: getattr(answers, name) for name in _COPIED}
    args = EngineArgs(
        **values,
        kv_cache_dtype=choice("kv_cache_dtype", {"auto", *kv_cache_dtypes}) or "auto",
        dtype=DTYPES[choice("dtype", DTYPES) or "auto"],
        mamba_cache_mode=choice("mamba_cache_mode", MAMBA_CACHE_MODES),
        mamba_ssm_cache_dtype=choice("mamba_ssm_cache_dtype", MAMBA_SSM_CACHE_DTYPES),
        speculative_config=_speculative_config(answers.speculative_config, problems),
        limit_mm_per_prompt=_limits(answers.limit_mm_per_prompt, problems),
    )
    return args, tuple(problems)


def _speculative_config(text: str | None, problems: list[Problem]) -> SpeculativeConfig | None:
    if text is None:
        return None
    given: dict[str, Any] = json.loads(text)
    method = given.get("method", "draft_model" if "model" in given else None)
    tokens = given.get("num_speculative_tokens")
    if not isinstance(method, str) or not 1 <= len(method) <= 64:  # noqa: PLR2004 - a name
        problems.append(_object_problem("speculative_config", text, "method"))
    elif not _is_count(tokens, 1, MAX_SPECULATIVE_TOKENS):
        problems.append(
            _object_problem("speculative_config", text, "num_speculative_tokens", 1,
                            MAX_SPECULATIVE_TOKENS)
        )  # fmt: skip
    else:
        return SpeculativeConfig(method, tokens)
    return None


def _limits(text: str | None, problems: list[Problem]) -> tuple[tuple[str, int], ...] | None:
    """Read `{"image": 4}` or `{"image": {"count": 4, ...}}`."""
    if text is None:
        return None
    limits: list[tuple[str, int]] = []
    for modality, value in json.loads(text).items():
        count = value.get("count") if isinstance(value, dict) else value
        if modality in MODALITIES and _is_count(count, 0, MAX_ITEMS_PER_PROMPT):
            limits.append((modality, count))
        else:
            problems.append(
                _object_problem("limit_mm_per_prompt", text, modality, 0, MAX_ITEMS_PER_PROMPT)
            )
    return tuple(limits)


def _is_count(value: object, low: int, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _object_problem(field: str, text: str, key: str, *bounds: int) -> Problem:
    names = zip(("minimum", "maximum"), bounds, strict=False)
    return Problem("object_value", field, text, (("key", key[:64]), *names))
