"""What every flag changes, recomputed for one server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from app.core.checkpoint import Checkpoint
from app.core.engine import ResolvedEngineArgs, SpeculativeConfig
from app.core.model_spec import ModelSpec, StateSpec
from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB

FlagKind = Literal["memory", "divisor", "neither"]
Value = Number | bool

UTILIZATIONS = (0.9, 0.95)
FIRST_CACHE_BYTES = 8 * GIB
BATCHED_TOKENS = (2048, 16384)
SEQUENCES = (64, 256)
FEW_GRAPHS = 64
OFFLOADED_GIB = 8.0
KV_CACHE_DTYPES = ("bfloat16", "fp8", "nvfp4")
BLOCK_SIZES = (16, 64)
NO_ITEMS = (("audio", 0), ("image", 0), ("video", 0))
SOURCES = {
    "gpu_memory_utilization": "vllm/v1/worker/utils.py request_memory",
    "kv_cache_memory_bytes": "vllm/v1/worker/gpu_worker.py determine_available_memory",
    "max_num_batched_tokens": "vllm/v1/worker/gpu_model_runner.py profile_run",
    "max_num_seqs": "vllm/v1/worker/gpu_model_runner.py _dummy_sampler_run",
    "enforce_eager": "vllm/v1/worker/gpu_worker.py compile_or_warm_up_model",
    "max_cudagraph_capture_size": "vllm/config/vllm.py _set_cudagraph_sizes",
    "tensor_parallel_size": "vllm/model_executor/layers/linear.py",
    "checkpoint": "vllm/model_executor/layers/quantization",
    "cpu_offload_gb": "vllm/config/offload.py",
    "language_model_only": "vllm/config/multimodal.py",
    "limit_mm_per_prompt": "vllm/config/multimodal.py",
    "speculative_config": "vllm/config/speculative.py",
    "enable_lora": "vllm/lora/layers",
    "max_model_len": "vllm/config/model.py _get_and_verify_max_len",
    "kv_cache_dtype": "vllm/v1/kv_cache_interface.py page_size_bytes",
    "block_size": "vllm/v1/kv_cache_interface.py max_memory_usage_bytes",
    "decode_context_parallel_size": "vllm/v1/kv_cache_interface.py max_memory_usage_bytes",
    "disable_hybrid_kv_cache_manager": "vllm/v1/core/kv_cache_utils.py unify_hybrid_kv_cache_specs",
    "enable_prefix_caching": "vllm/v1/core/block_pool.py",
    "async_scheduling": "vllm/v1/core/sched/async_scheduler.py",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One other value of a flag and what the server then gives."""

    value: Value
    result: SizingResult


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A flag of this server: what it changes, its value now, one or two others with results.

    `kind`: `memory` changes the memory of the cache, `divisor` the bytes per token or the length,
    `neither` leaves both. `now` is None where the flag is unset and has no value. `others` is empty
    where there is nothing else to try. `source` is where vLLM does what the row says.
    """

    flag: str
    kind: FlagKind
    now: Value | None
    others: tuple[Outcome, ...]

    @property
    def source(self) -> str:
        """File of vLLM, and the place in it."""
        return SOURCES[self.flag]


@dataclass(frozen=True, slots=True)
class _Trial:
    flag: str
    kind: FlagKind
    now: Value | None
    requests: tuple[tuple[Value, SizingRequest], ...]


def what_if(result: SizingResult, checkpoints: Sequence[Checkpoint] = ()) -> tuple[FlagRow, ...]:
    """Try other values of every flag that touches memory, bytes per token or length.

    `checkpoints` are other files of the same model. Empty where vLLM refuses the server before it
    looks at memory.
    """
    resolved = result.resolved
    if resolved is None:
        return ()
    request = result.request
    trials = (
        *_memory_flags(request, resolved),
        *_weight_flags(request, checkpoints),
        *_extra_flags(request, resolved),
        *_divisor_flags(request, resolved),
        *_idle_flags(request, resolved),
    )
    return tuple(
        FlagRow(
            trial.flag,
            trial.kind,
            trial.now,
            tuple(Outcome(value, size(changed)) for value, changed in trial.requests),
        )
        for trial in trials
    )


def _args(
    request: SizingRequest,
    flag: str,
    kind: FlagKind,
    now: Value | None,
    others: Iterable[object],
) -> _Trial:
    """Try other values of one engine argument, the present one left out."""
    tried = tuple(
        (_shown(other), replace(request, engine_args=request.engine_args.with_flag(flag, other)))
        for other in others
        if _shown(other) != now
    )
    return _Trial(flag, kind, now, tried)


def _shown(value: object) -> Value:
    """Show a value as the row prints it; a draft by its number of tokens."""
    if isinstance(value, SpeculativeConfig):
        return value.num_speculative_tokens
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, tuple):
        return json.dumps(dict(value), separators=(",", ":"))
    return 0


def _memory_flags(request: SizingRequest, resolved: ResolvedEngineArgs) -> Iterator[_Trial]:
    now = resolved.gpu_memory_utilization
    yield _args(request, "gpu_memory_utilization", "memory", now, UTILIZATIONS)
    cache_bytes = resolved.kv_cache_memory_bytes
    twice = 2 * (cache_bytes or FIRST_CACHE_BYTES)
    yield _args(request, "kv_cache_memory_bytes", "memory", cache_bytes, (twice,))
    tokens = resolved.max_num_batched_tokens
    yield _args(request, "max_num_batched_tokens", "memory", tokens, BATCHED_TOKENS)
    yield _args(request, "max_num_seqs", "memory", resolved.max_num_seqs, SEQUENCES)
    yield _args(request, "enforce_eager", "memory", resolved.enforce_eager, (True, False))
    largest = request.engine_args.max_cudagraph_capture_size
    yield _args(request, "max_cudagraph_capture_size", "memory", largest, (FEW_GRAPHS,))


def _weight_flags(request: SizingRequest, checkpoints: Sequence[Checkpoint]) -> Iterator[_Trial]:
    layout = request.layout
    width = layout.tensor_parallel_size
    yield _Trial(
        "tensor_parallel_size",
        "memory",
        width,
        tuple(
            (other, replace(request, layout=replace(layout, tensor_parallel_size=other)))
            for other in (width // 2, width * 2)
            if other >= 1
        ),
    )
    others = [other for other in checkpoints if other.precision != request.checkpoint.precision]
    if others:
        yield _Trial(
            "checkpoint",
            "memory",
            request.checkpoint.hf_id,
            tuple((other.hf_id, replace(request, checkpoint=other)) for other in others[:2]),
        )
    offloaded = request.engine_args.cpu_offload_gb
    yield _args(request, "cpu_offload_gb", "memory", offloaded, (offloaded + OFFLOADED_GIB,))


def _extra_flags(request: SizingRequest, resolved: ResolvedEngineArgs) -> Iterator[_Trial]:
    """Flags of parts that not every model or server has."""
    model = request.model
    if model.multimodal:
        text_only = resolved.language_model_only
        yield _args(request, "language_model_only", "memory", text_only, (True, False))
        limits = resolved.limit_mm_per_prompt
        now_limited = None if limits is None else _shown(limits)
        yield _args(request, "limit_mm_per_prompt", "memory", now_limited, (NO_ITEMS,))
    if model.mtp_layers and "mtp" in request.checkpoint.includes:
        drafts = (None, SpeculativeConfig("mtp", 1))
        now = resolved.num_speculative_tokens
        yield _args(request, "speculative_config", "memory", now, drafts)
    yield _args(request, "enable_lora", "memory", resolved.enable_lora, (True, False))


def _divisor_flags(request: SizingRequest, resolved: ResolvedEngineArgs) -> Iterator[_Trial]:
    layout, length = request.layout, resolved.max_model_len
    lengths = [n for n in (length // 2, length * 2) if 1 <= n <= resolved.derived_max_model_len]
    yield _args(request, "max_model_len", "divisor", length, lengths)
    dtype = resolved.cache_dtype
    dtypes = [other for other in KV_CACHE_DTYPES if not dtype.startswith(other)]
    yield _args(request, "kv_cache_dtype", "divisor", dtype, dtypes[:2])
    yield _args(request, "block_size", "divisor", resolved.user_block_size, BLOCK_SIZES)
    if layout.tensor_parallel_size > 1:
        now = layout.decode_context_parallel_size
        changed = replace(layout, decode_context_parallel_size=1 if now > 1 else 2)
        yield _Trial(
            "decode_context_parallel_size",
            "divisor",
            now,
            ((changed.decode_context_parallel_size, replace(request, layout=changed)),),
        )
    if mixes_caches(request.model):
        off = resolved.disable_hybrid_kv_cache_manager
        yield _args(request, "disable_hybrid_kv_cache_manager", "divisor", off, (True, False))


def _idle_flags(request: SizingRequest, resolved: ResolvedEngineArgs) -> Iterator[_Trial]:
    """Flags that people try for memory; they change none where all layers cache alike."""
    kind: FlagKind = "divisor" if mixes_caches(request.model) else "neither"
    caching = resolved.enable_prefix_caching
    yield _args(request, "enable_prefix_caching", kind, caching, (True, False))
    yield _args(request, "async_scheduling", kind, resolved.async_scheduling, (True, False))


@lru_cache(maxsize=1024)
def mixes_caches(model: ModelSpec) -> bool:
    """Whether layers keep different caches or states, so that one group does not hold them all."""
    caches = {layer.cache for layer in model.layers if layer.cache is not None}
    return len(caches) > 1 or any(isinstance(cache, StateSpec) for cache in caches)
