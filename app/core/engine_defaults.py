"""Resolves what the person left open with the defaults of a release, a card and a model."""

from __future__ import annotations

from typing import NamedTuple

from app.core.batch_defaults import async_scheduling, batch_sizes, batches_in_flight, model_runner
from app.core.cache_defaults import cache_dtype, draft_layers, mamba_cache_mode, prefix_caching
from app.core.capture_sizes import capture_sizes
from app.core.engine import ResolvedEngineArgs
from app.core.layout_rules import check_layout, check_model_build
from app.core.lengths import resolve_max_model_len
from app.core.model_traits import ModelTraits, model_traits
from app.core.request import SizingRequest
from app.core.start_rules import (
    check_before_batches,
    check_chunked_prefill,
    check_dtypes,
    check_latent_dtype,
    check_model_dtype,
    check_slices,
)


class _Checked(NamedTuple):
    """What passed vLLM's checks."""

    max_model_len: int
    derived_max_model_len: int
    auto_fit: bool
    dtype: str
    cache_dtype: str
    caching: bool
    mamba_cache_mode: str
    chunked: bool
    tokens: int
    seqs: int


def resolve_engine_args(request: SizingRequest) -> ResolvedEngineArgs:
    """Resolve every engine argument as `vllm serve` of that release would.

    Raises Refusal where vLLM would refuse the length, the layout or the KV cache dtype before it
    looks at memory. Source: vllm/engine/arg_utils.py `create_engine_config`.
    """
    args, model, release = request.engine_args, request.model, request.release
    traits = model_traits(model)
    checked = _checked(request, traits)
    runner = model_runner(model, release)
    asynchronous = async_scheduling(request, runner)
    in_flight = batches_in_flight(request, runner, asynchronous=asynchronous)
    draft = args.speculative_config
    return ResolvedEngineArgs(
        max_model_len=checked.max_model_len,
        derived_max_model_len=checked.derived_max_model_len,
        auto_fit=checked.auto_fit,
        dtype=checked.dtype,
        cache_dtype=checked.cache_dtype,
        user_block_size=args.block_size,
        gpu_memory_utilization=args.gpu_memory_utilization or release.gpu_memory_utilization,
        kv_cache_memory_bytes=args.kv_cache_memory_bytes,
        num_gpu_blocks_override=args.num_gpu_blocks_override,
        max_num_batched_tokens=checked.tokens,
        max_num_seqs=checked.seqs,
        max_in_flight_tokens=checked.tokens * in_flight,
        enforce_eager=args.enforce_eager,
        enable_prefix_caching=checked.caching,
        async_scheduling=asynchronous,
        disable_hybrid_kv_cache_manager=args.disable_hybrid_kv_cache_manager,
        mamba_cache_mode=checked.mamba_cache_mode,
        mamba_ssm_cache_dtype=args.mamba_ssm_cache_dtype or "auto",
        num_speculative_tokens=draft.num_speculative_tokens if draft else 0,
        speculative_method=draft.method if draft else None,
        draft_layers=draft_layers(draft, model),
        enable_chunked_prefill=checked.chunked,
        cpu_offload_gb=args.cpu_offload_gb,
        cudagraph_capture_sizes=capture_sizes(request, checked.tokens, checked.seqs),
        model_runner=runner,
        language_model_only=args.language_model_only,
        enable_lora=args.enable_lora,
        max_loras=args.max_loras,
        max_lora_rank=args.max_lora_rank,
        limit_mm_per_prompt=args.limit_mm_per_prompt,
    )


def _checked(request: SizingRequest, traits: ModelTraits) -> _Checked:
    """Resolve what can be refused, in the order in which vLLM would. Raises Refusal."""
    args, model, layout, release = (
        request.engine_args,
        request.model,
        request.layout,
        request.release,
    )
    check_slices(request)
    dtype = model.dtype if args.dtype == "auto" else args.dtype
    check_model_dtype(request, dtype)
    length, derived, auto_fit = resolve_max_model_len(args.max_model_len, model.length, release)
    stored = cache_dtype(request)
    check_before_batches(request, traits, stored)
    chunked = args.enable_chunked_prefill is not False and not traits.encoder_decoder
    tokens, seqs = batch_sizes(request, length, chunked=chunked)
    caching = prefix_caching(request, traits)
    mode = mamba_cache_mode(request, traits, caching=caching)
    check_chunked_prefill(request, mode, chunked=chunked)
    check_dtypes(request, dtype, stored)
    check_layout(model, layout, release)
    check_latent_dtype(request, traits, stored)
    check_model_build(model, layout, release)
    return _Checked(length, derived, auto_fit, dtype, stored, caching, mode, chunked, tokens, seqs)
