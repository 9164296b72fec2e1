"""Resolves what the person left open with the defaults of a release, a card and a model."""

from __future__ import annotations

from functools import lru_cache

from app.core.capture_sizes import capture_sizes
from app.core.checkpoint import Checkpoint
from app.core.engine import EngineArgs, ResolvedEngineArgs, SpeculativeConfig
from app.core.gpu_spec import GpuSpec
from app.core.layout_rules import check_layout
from app.core.lengths import resolve_max_model_len
from app.core.model_spec import ModelSpec, StateSpec
from app.core.refusals import refuse
from app.core.releases import BatchTier, Release
from app.core.request import SizingRequest
from app.core.units import GIB


def resolve_engine_args(request: SizingRequest) -> ResolvedEngineArgs:
    """Resolve every engine argument as `vllm serve` of that release would.

    Raises Refusal where vLLM would refuse the length, the layout or the KV cache dtype before it
    looks at memory. Source: vllm/engine/arg_utils.py `create_engine_config`.
    """
    args, model, release = request.engine_args, request.model, request.release
    max_model_len, derived, auto_fit = resolve_max_model_len(
        args.max_model_len, model.length, release
    )
    check_layout(model, request.layout, release)
    hybrid, recurrent = _recurrence(model)
    chunked = args.enable_chunked_prefill is not False
    tokens, seqs = _batch_sizes(args, _tier(release, request.gpu), max_model_len, chunked=chunked)
    caching = _prefix_caching(args, release, hybrid=hybrid, recurrent=recurrent)
    runner = _model_runner(model, release)
    asynchronous = _async_scheduling(args, request, runner)
    draft = args.speculative_config
    return ResolvedEngineArgs(
        max_model_len=max_model_len,
        derived_max_model_len=derived,
        auto_fit=auto_fit,
        dtype=model.dtype if args.dtype == "auto" else args.dtype,
        cache_dtype=_cache_dtype(args, request.checkpoint, release),
        user_block_size=args.block_size,
        gpu_memory_utilization=args.gpu_memory_utilization or release.gpu_memory_utilization,
        kv_cache_memory_bytes=args.kv_cache_memory_bytes,
        num_gpu_blocks_override=args.num_gpu_blocks_override,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        max_in_flight_tokens=tokens
        * _batches_in_flight(request, runner, asynchronous=asynchronous),
        enforce_eager=args.enforce_eager,
        enable_prefix_caching=caching,
        async_scheduling=asynchronous,
        disable_hybrid_kv_cache_manager=args.disable_hybrid_kv_cache_manager,
        mamba_cache_mode=_mamba_cache_mode(args, hybrid=hybrid, caching=caching),
        mamba_ssm_cache_dtype=args.mamba_ssm_cache_dtype or "auto",
        num_speculative_tokens=draft.num_speculative_tokens if draft else 0,
        speculative_method=draft.method if draft else None,
        draft_layers=_draft_layers(draft, model),
        enable_chunked_prefill=chunked,
        cpu_offload_gb=args.cpu_offload_gb,
        cudagraph_capture_sizes=capture_sizes(request, tokens, seqs),
        model_runner=runner,
        language_model_only=args.language_model_only,
        enable_lora=args.enable_lora,
        max_loras=args.max_loras,
        max_lora_rank=args.max_lora_rank,
        limit_mm_per_prompt=args.limit_mm_per_prompt,
    )


@lru_cache(maxsize=1024)
def _recurrence(model: ModelSpec) -> tuple[bool, bool]:
    """Tell whether a model mixes attention with recurrent layers, and whether it has any."""
    recurrent = any(isinstance(layer.cache, StateSpec) for layer in model.layers)
    attention = any(
        layer.cache is not None and not isinstance(layer.cache, StateSpec) for layer in model.layers
    )
    return recurrent and attention, recurrent


@lru_cache(maxsize=1024)
def _tier(release: Release, gpu: GpuSpec) -> BatchTier:
    """Pick the batch defaults by what the driver reports; an unknown card gets the smallest."""
    memory = gpu.driver_memory_bytes or gpu.total_memory_bytes or 0
    capability = ".".join(str(part) for part in gpu.compute_capability or ())
    for tier in release.batch_tiers:
        excluded = any(part in gpu.name.lower() for part in tier.excluded_name_parts)
        if (
            memory >= tier.min_memory_gib * GIB
            and not excluded
            and capability not in tier.excluded_compute_capabilities
        ):
            return tier
    return release.batch_tiers[-1]


def _batch_sizes(
    args: EngineArgs, tier: BatchTier, max_model_len: int, *, chunked: bool
) -> tuple[int, int]:
    """Resolve max_num_batched_tokens and max_num_seqs; given values are never altered."""
    seqs = args.max_num_seqs or tier.max_num_seqs
    tokens = args.max_num_batched_tokens
    if tokens is None:
        tokens = tier.max_num_batched_tokens
        if not chunked:
            tokens = max(max_model_len, tokens)
        tokens = min(seqs * max_model_len, tokens)
    if args.max_num_seqs is None:
        seqs = min(seqs, tokens)
    return tokens, seqs


def _cache_dtype(args: EngineArgs, checkpoint: Checkpoint, release: Release) -> str:
    dtype = args.kv_cache_dtype
    if dtype not in release.kv_cache_dtypes:
        raise refuse(release, "kv_dtype_not_supported", "dtype_unknown", kv_cache_dtype=dtype)
    declared = checkpoint.kv_cache_scheme if release.checkpoint_kv_cache_scheme else None
    return declared if dtype == "auto" and declared is not None else dtype


def _prefix_caching(args: EngineArgs, release: Release, *, hybrid: bool, recurrent: bool) -> bool:
    if args.enable_prefix_caching is not None:
        return args.enable_prefix_caching
    if hybrid:
        return release.hybrid_prefix_caching
    return not recurrent


def _mamba_cache_mode(args: EngineArgs, *, hybrid: bool, caching: bool) -> str:
    """Blocks of states follow the prefix cache, which needs them aligned."""
    if not hybrid or not caching:
        return "none"
    return args.mamba_cache_mode if args.mamba_cache_mode == "all" else "align"


def _draft_layers(draft: SpeculativeConfig | None, model: ModelSpec) -> int:
    """Layers that a draft adds to the cache: the checkpoint's MTP layers, or one for EAGLE."""
    if draft is None or draft.method in {"ngram", "ngram_gpu", "suffix"}:
        return 0
    if "mtp" in draft.method:
        return len(model.mtp_layers)
    return 1


def _model_runner(model: ModelSpec, release: Release) -> str:
    """Name the model runner that a release picks for a model: V1 or V2.

    Source: vllm/config/vllm.py `use_v2_model_runner`.
    """
    if release.default_model_runner == "V2" or model.architecture in release.v2_architectures:
        return "V2"
    dense_text = not model.num_experts and not model.multimodal and not _recurrence(model)[1]
    return "V2" if release.v2_dense_models and dense_text else "V1"


def _async_scheduling(args: EngineArgs, request: SizingRequest, runner: str) -> bool:
    if args.async_scheduling is not None:
        return args.async_scheduling
    if runner == "V1" and request.layout.pipeline_parallel_size > 1:
        return False
    return request.release.async_scheduling


def _batches_in_flight(request: SizingRequest, runner: str, *, asynchronous: bool) -> int:
    """Count the batches whose tokens a sliding window has to keep."""
    if not request.release.in_flight_counts_async:
        return 1
    stages = request.layout.pipeline_parallel_size
    if not asynchronous:
        return stages
    if runner == "V2" or stages == 1:
        return stages + 1
    return stages
