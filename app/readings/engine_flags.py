"""vLLM's engine arguments as far as they bear on memory: names, spellings, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from app.core.units import HumanReadableIntError, human_readable_int, parse_max_model_len
from app.readings.observation import ArgValue
from app.readings.python_literal import scalar


def _text(value: ArgValue) -> ArgValue:
    return value.removeprefix("torch.") if isinstance(value, str) and value != "..." else None


def _integer(value: ArgValue) -> ArgValue:
    number = scalar(value) if isinstance(value, str) else value
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _decimal(value: ArgValue) -> ArgValue:
    number = scalar(value) if isinstance(value, str) else value
    return (
        float(number) if isinstance(number, int | float) and not isinstance(number, bool) else None
    )


def _flag(value: ArgValue) -> ArgValue:
    known = scalar(value) if isinstance(value, str) else value
    return known if isinstance(known, bool) else None


def _size(value: ArgValue) -> ArgValue:
    return _human_readable(value, human_readable_int)


def _length(value: ArgValue) -> ArgValue:
    return _human_readable(value, parse_max_model_len)


def _object(value: ArgValue) -> ArgValue:
    return value if isinstance(value, dict) and value else None


def _list(value: ArgValue) -> ArgValue:
    return value if isinstance(value, list) and value else None


def _human_readable(value: ArgValue, read: Callable[[str], int]) -> ArgValue:
    if isinstance(value, str):
        try:
            return read(value)
        except HumanReadableIntError:
            return None
    return _integer(value)


_READERS: Final[Mapping[str, Callable[[ArgValue], ArgValue]]] = {
    "model": _text,
    "served_model_name": _text,
    "tensor_parallel_size": _integer,
    "pipeline_parallel_size": _integer,
    "data_parallel_size": _integer,
    "decode_context_parallel_size": _integer,
    "prefill_context_parallel_size": _integer,
    "enable_expert_parallel": _flag,
    "max_model_len": _length,
    "dtype": _text,
    "quantization": _text,
    "kv_cache_dtype": _text,
    "block_size": _integer,
    "gpu_memory_utilization": _decimal,
    "kv_cache_memory_bytes": _size,
    "num_gpu_blocks_override": _integer,
    "max_num_batched_tokens": _size,
    "max_num_seqs": _integer,
    "enforce_eager": _flag,
    "enable_prefix_caching": _flag,
    "enable_chunked_prefill": _flag,
    "async_scheduling": _flag,
    "disable_hybrid_kv_cache_manager": _flag,
    "mamba_cache_mode": _text,
    "mamba_ssm_cache_dtype": _text,
    "speculative_config": _object,
    "speculative_model": _text,
    "num_speculative_tokens": _integer,
    "cpu_offload_gb": _decimal,
    "kv_offloading_size": _decimal,
    "max_cudagraph_capture_size": _integer,
    "cudagraph_capture_sizes": _list,
    "cudagraph_mode": _text,
    "compilation_config": _object,
    "optimization_level": _integer,
    "performance_mode": _text,
    "attention_backend": _text,
    "limit_mm_per_prompt": _object,
    "language_model_only": _flag,
    "skip_mm_profiling": _flag,
    "enable_lora": _flag,
    "max_loras": _integer,
    "max_lora_rank": _integer,
    "hf_overrides": _object,
    "rope_scaling": _object,
}
_SPELLINGS: Final[Mapping[str, str]] = {
    "model_tag": "model",
    "max_seq_len": "max_model_len",
    "chunked_prefill_enabled": "enable_chunked_prefill",
    "kv_cache_memory": "kv_cache_memory_bytes",
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dcp": "decode_context_parallel_size",
    "pcp": "prefill_context_parallel_size",
    "ep": "enable_expert_parallel",
    "q": "quantization",
    "cc": "compilation_config",
    "sc": "speculative_config",
    "O": "optimization_level",
}
FLAG_NAMES: Final = frozenset(_READERS)


def canonical_name(name: str) -> str | None:
    """vLLM's name for an argument as written (dashes, short forms); None for one not kept."""
    plain = name.replace("-", "_")
    plain = _SPELLINGS.get(plain, plain)
    return plain if plain in FLAG_NAMES else None


def is_flag(name: str) -> bool:
    """Whether an argument is a switch that takes no value."""
    return _READERS.get(name) is _flag


def is_object(name: str) -> bool:
    """Whether an argument's value is a JSON object, which may also come in dotted parts."""
    return _READERS.get(name) is _object


def engine_args_of(entries: Mapping[str, ArgValue]) -> dict[str, ArgValue]:
    """Keep the arguments that bear on memory, under vLLM's names; None and the unreadable go."""
    kept: dict[str, ArgValue] = {}
    for written, value in entries.items():
        name = canonical_name(written)
        if name is None:
            continue
        first = value[0] if isinstance(value, list) and value and _READERS[name] is _text else value
        read = _READERS[name](first)
        if read is not None and read != "":
            kept.setdefault(name, read)
    return _unified(kept)


def _unified(kept: dict[str, ArgValue]) -> dict[str, ArgValue]:
    """Fold older and nested spellings into the present ones."""
    speculative = kept.get("speculative_config")
    if isinstance(speculative, dict) and "num_spec_tokens" in speculative:
        renamed = dict(speculative)
        renamed["num_speculative_tokens"] = renamed.pop("num_spec_tokens")
        kept["speculative_config"] = renamed
    drafts = {
        "model": kept.pop("speculative_model", None),
        "num_speculative_tokens": kept.pop("num_speculative_tokens", None),
    }
    stated: dict[str, ArgValue] = {
        name: value for name, value in drafts.items() if value is not None
    }
    if stated:
        kept.setdefault("speculative_config", stated)
    compilation = kept.pop("compilation_config", None)
    if isinstance(compilation, dict):
        for name in ("cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size"):
            nested = _READERS[name](compilation.get(name))
            if nested is not None:
                kept.setdefault(name, nested)
    sizes = kept.pop("cudagraph_capture_sizes", None)
    if isinstance(sizes, list) and sizes:
        numbers = [size for size in sizes if isinstance(size, int)]
        if numbers:
            kept.setdefault("max_cudagraph_capture_size", max(numbers))
    return kept
