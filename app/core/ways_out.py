"""What to change when a server does not fit, each change sized before it is offered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.core.checkpoint import Checkpoint
from app.core.gpu_spec import GpuSpec
from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.core.weights import checkpoint_bytes

Change = tuple[tuple[str, Number | bool], ...]
Candidate = tuple[Change, SizingRequest]

LENGTHS = tuple(sorted((step << shift for shift in range(10, 21) for step in (1, 3)), reverse=True))
UTILIZATIONS = (0.92, 0.95)
LOWER_UTILIZATIONS = (0.95, 0.92, 0.9, 0.85, 0.8)
SMALLER_BATCHES = ((256, 2048), (64, 2048))
SURELY_LOADED = 0.8
KV_CACHE_DTYPES = ("auto", "bfloat16", "fp8", "nvfp4")


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What else could be used: checkpoints of the same model, cards, cards per copy."""

    checkpoints: tuple[Checkpoint, ...] = ()
    gpus: tuple[GpuSpec, ...] = ()
    tensor_parallel_sizes: tuple[int, ...] = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class WayOut:
    """A change (vLLM's flag names, or `checkpoint` and `gpu`) and what it gives. It fits."""

    change: Change
    result: SizingResult


def ways_out(result: SizingResult, alternatives: Alternatives) -> tuple[WayOut, ...]:
    """Find changes after which the server starts and at least one request may be promised.

    Same model and files first (context, cards per copy, cache dtype, utilization, batch), then
    another precision, then another card. Of each kind the smallest change that fits.
    """
    request = result.request
    kinds = (
        _lengths(result),
        _groups(request, alternatives),
        _kv_cache_dtypes(request),
        _utilizations(result, alternatives),
        _without_other_processes(request),
        _batches(request),
        _state_slots(result),
        _without_context_parallelism(request),
        _checkpoints(request, alternatives),
        _gpus(request, alternatives),
    )
    return tuple(way for kind in kinds if (way := _first_that_fits(kind)) is not None)


def could_hold(request: SizingRequest) -> bool:
    """Tell whether the files come near to lying on the cards: what cannot need not be sized.

    Generous, since optional parts of the files may stay unloaded and weights may be offloaded.
    """
    given = request.measured
    if given.available_kv_cache_memory_bytes is not None or given.weights_bytes is not None:
        return True
    gpu, layout = request.gpu, request.layout
    seen = request.gpu_total_memory_bytes or gpu.total_memory_bytes or gpu.driver_memory_bytes
    if seen is None:
        return True
    per_card = seen + int(request.engine_args.cpu_offload_gb * GIB)
    surely_loaded = checkpoint_bytes(request.model, request.checkpoint) * SURELY_LOADED
    return surely_loaded <= layout.cards_per_engine * layout.data_parallel_size * per_card


def _first_that_fits(candidates: Iterable[Candidate]) -> WayOut | None:
    for change, request in candidates:
        if not could_hold(request):
            continue
        result = size(request)
        if result.ok and result.verdict_requests >= 1:
            return WayOut(change, result)
    return None


def _with_args(request: SizingRequest, **flags: Number) -> Candidate:
    """Offer other engine arguments."""
    args = request.engine_args
    for flag, value in flags.items():
        args = args.with_flag(flag, value)
    return tuple(flags.items()), replace(request, engine_args=args)


def _lengths(result: SizingResult) -> Iterator[Candidate]:
    """Shorter contexts, longest first; for one that is too long, what the model allows first."""
    request, reason = result.request, result.reason
    numbers = {} if reason is None else dict(reason.numbers)
    derived = numbers.get("derived_max_model_len")
    if isinstance(derived, int | float):
        yield _with_args(request, max_model_len=int(derived))
    declared = (
        request.engine_args.max_model_len
        if result.resolved is None
        else result.resolved.max_model_len
    )
    longest = None if reason is None else reason.estimated_max_model_len
    for length in LENGTHS:
        if (declared is None or length < declared) and (longest is None or length <= longest):
            yield _with_args(request, max_model_len=length)


def _groups(request: SizingRequest, alternatives: Alternatives) -> Iterator[Candidate]:
    """More cards per copy, smallest first; then fewer, for heads that do not divide.

    Copies that stand on the same cards melt into one.
    """
    now = request.layout.tensor_parallel_size
    wider = [width for width in alternatives.tensor_parallel_sizes if width > now]
    narrower = [width for width in alternatives.tensor_parallel_sizes if width < now]
    for width in (*sorted(wider), *sorted(narrower, reverse=True)):
        replicas = max(1, request.layout.replicas * now // width)
        layout = replace(request.layout, tensor_parallel_size=width, replicas=replicas)
        change: Change = (("tensor_parallel_size", width),)
        if replicas != request.layout.replicas:
            change += (("replicas", replicas),)
        yield change, replace(request, layout=layout)


def _kv_cache_dtypes(request: SizingRequest) -> Iterator[Candidate]:
    for dtype in KV_CACHE_DTYPES:
        if dtype != request.engine_args.kv_cache_dtype:
            yield _with_args(request, kv_cache_dtype=dtype)


def _utilizations(result: SizingResult, alternatives: Alternatives) -> Iterator[Candidate]:
    """More of the card; where the budget is not free at start less of it, then of more cards."""
    if result.resolved is None:
        return
    now = result.resolved.gpu_memory_utilization
    free = _free_share(result)
    if free is not None:
        for utilization in (*LOWER_UTILIZATIONS, free):
            if 0 < utilization < now:
                yield _with_args(result.request, gpu_memory_utilization=utilization)
        for change, wider in _groups(result.request, alternatives):
            free = _free_share(size(wider))
            if free:
                share, candidate = _with_args(wider, gpu_memory_utilization=free)
                yield (*share, *change), candidate
        return
    for utilization in UTILIZATIONS:
        if utilization > now:
            yield _with_args(result.request, gpu_memory_utilization=utilization)


def _free_share(result: SizingResult) -> float | None:
    """Return what is free of a card in whole hundredths; None where that is not the trouble."""
    reason = result.reason
    if reason is None or reason.code != "free_memory_below_request":
        return None
    numbers = dict(reason.numbers)
    total = max(0.01, float(numbers["total_gib"]))
    return math.floor(100 * float(numbers["free_gib"]) / total) / 100


def _without_other_processes(request: SizingRequest) -> Iterator[Candidate]:
    if request.other_processes_bytes:
        yield (("other_processes_gib", 0.0),), replace(request, other_processes_bytes=0)


def _batches(request: SizingRequest) -> Iterator[Candidate]:
    """Fewer sequences and tokens at once: the profile run then takes less."""
    for max_num_seqs, max_num_batched_tokens in SMALLER_BATCHES:
        yield _with_args(
            request, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens
        )


def _state_slots(result: SizingResult) -> Iterator[Candidate]:
    """As many sequences as there are states, where a hybrid has too few."""
    reason = result.reason
    if reason is None or reason.code != "mamba_blocks_below_max_num_seqs":
        return
    yield _with_args(result.request, max_num_seqs=dict(reason.numbers)["num_gpu_blocks"])


def _without_context_parallelism(request: SizingRequest) -> Iterator[Candidate]:
    if request.layout.decode_context_parallel_size > 1:
        layout = replace(request.layout, decode_context_parallel_size=1)
        yield (("decode_context_parallel_size", 1),), replace(request, layout=layout)


def _checkpoints(request: SizingRequest, alternatives: Alternatives) -> Iterator[Candidate]:
    """Other files of the same model, in the order given; alone first, then on more cards."""
    others = [other for other in alternatives.checkpoints if other != request.checkpoint]
    for other in others:
        yield (("checkpoint", other.hf_id),), replace(request, checkpoint=other)
    for other in others:
        changed = replace(request, checkpoint=other)
        for change, candidate in _groups(changed, alternatives):
            yield (("checkpoint", other.hf_id), *change), candidate


def _gpus(request: SizingRequest, alternatives: Alternatives) -> Iterator[Candidate]:
    """Other cards in the order given, alone first, then more of them."""
    others = [other for other in alternatives.gpus if other.slug != request.gpu.slug]
    for other in others:
        yield (("gpu", other.slug),), replace(request, gpu=other, gpu_total_memory_bytes=None)
    for other in others:
        changed = replace(request, gpu=other, gpu_total_memory_bytes=None)
        for change, candidate in _groups(changed, alternatives):
            yield (("gpu", other.slug), *change), candidate
