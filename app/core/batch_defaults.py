"""How many tokens and requests a batch holds, and how many batches are in flight.

Source: vllm/engine/arg_utils.py `_set_default_max_num_seqs_and_batched_tokens_args`,
vllm/config/scheduler.py `verify_max_model_len`, vllm/config/vllm.py.
"""

from __future__ import annotations

from functools import lru_cache

from app.core.engine import EngineArgs
from app.core.gpu_spec import GpuSpec
from app.core.model_spec import ModelSpec
from app.core.model_traits import model_traits
from app.core.refusals import refuse
from app.core.releases import BatchTier, Release
from app.core.request import SizingRequest
from app.core.units import GIB


def batch_sizes(request: SizingRequest, max_model_len: int, *, chunked: bool) -> tuple[int, int]:
    """Resolve max_num_batched_tokens and max_num_seqs; given values are never altered.

    Raises Refusal where a batch could not hold a prompt or one token of every request.
    """
    args, release = request.engine_args, request.release
    tier = _tier(release, request.gpu)
    seqs = args.max_num_seqs or tier.max_num_seqs
    tokens = args.max_num_batched_tokens
    if tokens is None:
        tokens = tier.max_num_batched_tokens
        if not chunked:
            tokens = max(max_model_len, tokens)
        tokens = max(tokens, _least_tokens(args, request.model, release))
        tokens = min(seqs * max_model_len, tokens)
    if args.max_num_seqs is None:
        seqs = min(seqs, tokens)
    numbers = {
        "max_num_batched_tokens": tokens,
        "max_num_seqs": seqs,
        "max_model_len": max_model_len,
    }
    if tokens < max_model_len and not chunked:
        raise refuse(release, "refused_by_vllm", "batch_below_length", **numbers)
    if tokens < seqs:
        raise refuse(release, "refused_by_vllm", "batch_below_seqs", **numbers)
    return tokens, seqs


def _least_tokens(args: EngineArgs, model: ModelSpec, release: Release) -> int:
    """Tokens of the largest image where images attend in both directions, so cannot be split."""
    if not model.mm_prefix or args.language_model_only:
        return 0
    return max(
        (
            tokens
            for start, tokens in release.min_batched_tokens
            if model.model_type.startswith(start)
        ),
        default=0,
    )


@lru_cache(maxsize=1024)
def _tier(release: Release, gpu: GpuSpec) -> BatchTier:
    """Pick the batch defaults by what the driver reports; the last tier takes every card."""
    memory = gpu.driver_memory_bytes or gpu.total_memory_bytes or 0
    capability = ".".join(str(part) for part in gpu.compute_capability or ())
    return next(
        tier
        for tier in release.batch_tiers
        if memory >= tier.min_memory_gib * GIB
        and not any(part in gpu.name.lower() for part in tier.excluded_name_parts)
        and capability not in tier.excluded_compute_capabilities
    )


def model_runner(model: ModelSpec, release: Release) -> str:
    """Name the model runner that a release picks for a model: V1 or V2.

    Source: vllm/config/vllm.py `use_v2_model_runner`.
    """
    if release.default_model_runner == "V2" or model.architecture in release.v2_architectures:
        return "V2"
    dense_text = (
        not model.num_experts and not model.multimodal and not model_traits(model).recurrent
    )
    return "V2" if release.v2_dense_models and dense_text else "V1"


def async_scheduling(request: SizingRequest, runner: str) -> bool:
    """Tell whether the next batch is scheduled while one runs."""
    given = request.engine_args.async_scheduling
    if given is not None:
        return given
    if runner == "V1" and request.layout.pipeline_parallel_size > 1:
        return False
    return request.release.async_scheduling


def batches_in_flight(request: SizingRequest, runner: str, *, asynchronous: bool) -> int:
    """Count the batches whose tokens a sliding window has to keep."""
    if not request.release.in_flight_counts_async:
        return 1
    stages = request.layout.pipeline_parallel_size
    if not asynchronous:
        return stages
    if runner == "V2" or stages == 1:
        return stages + 1
    return stages
