"""Why a memory term may not be what was predicted: causes that can be tried, then those known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from app.core.checkpoint import Checkpoint
from app.core.engine import SpeculativeConfig
from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import predicted_terms
from app.core.units import GIB
from app.readings.observation import Observation

# A trial explains weights when it meets them to a hundredth; the log rounds far below that.
_SAME_WEIGHTS: Final = 0.01
_ROUNDING_BYTES: Final = 0.005 * GIB
_PADDED_METHODS: Final = frozenset({"mxfp4"})
_MOST_PADDING: Final = 1.2
# V1 up to here sampled with a sort over the whole vocabulary unless FlashInfer was installed.
_FLASHINFER_BY_CHOICE: Final = (0, 20)
_FEW_SAMPLER: Final = 0.6
_FOREIGN_GIB: Final = 2.0


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause: a code with its numbers.

    Of memory: `draft_weights`, `other_checkpoint` (checkpoint), `towers_left_out`,
    `split_not_stated` (tensor_parallel_size), `weights_offloaded` (cpu_offload_gb),
    `kernel_padding` (percent), `release_unknown`, `compile_cache_empty`, `compile_cache_filled`,
    `flashinfer_sampler`, `encoder_profiled`, `nccl_buffers`, `other_process` (used_gib),
    `capture_sizes`, `graphs_vary`, `other_card_or_driver`, `follows_from_term` (term),
    `shared_memory`, `unexplained`.
    Of the block arithmetic: see `arithmetic_causes`.
    """

    code: str
    numbers: Mapping[str, Number] = field(default_factory=dict)


def weights_cause(
    start: Observation, request: SizingRequest, printed: float, checkpoints: Sequence[Checkpoint]
) -> Cause:
    """Why the weights are not what was predicted: of the trials that meet them the nearest."""
    met: list[tuple[float, Cause]] = []
    for cause, trial in _weight_trials(start, request, checkpoints):
        term = predicted_terms(trial).get("weights")
        if term is not None and abs(term.likely - printed) <= _SAME_WEIGHTS * printed:
            met.append((max(_ROUNDING_BYTES, abs(term.likely - printed)), cause))
    if met:
        return min(met, key=lambda each: each[0])[1]
    if request.engine_args.cpu_offload_gb:
        return Cause("weights_offloaded", {"cpu_offload_gb": request.engine_args.cpu_offload_gb})
    predicted = predicted_terms(request)["weights"].likely
    growth = printed / predicted if predicted else 0.0
    padded = request.checkpoint.quantization.method in _PADDED_METHODS
    if padded and 1 < growth <= _MOST_PADDING:
        return Cause("kernel_padding", {"percent": 100 * (growth - 1)})
    return Cause("unexplained" if start.vllm_version else "release_unknown")


def _weight_trials(
    start: Observation, request: SizingRequest, checkpoints: Sequence[Checkpoint]
) -> Iterator[tuple[Cause, SizingRequest]]:
    args = request.engine_args
    if request.model.mtp_layers and args.speculative_config is None:
        drafts = args.with_flag("speculative_config", SpeculativeConfig("mtp", 1))
        yield Cause("draft_weights"), replace(request, engine_args=drafts)
    if request.model.multimodal and not args.language_model_only:
        text = args.with_flag("language_model_only", value=True)
        yield Cause("towers_left_out"), replace(request, engine_args=text)
    if start.tensor_parallel_size is None:
        for width in (2, 4, 8):
            layout = replace(request.layout, tensor_parallel_size=width)
            yield (
                Cause("split_not_stated", {"tensor_parallel_size": width}),
                replace(request, layout=layout),
            )
    for other in checkpoints:
        if other != request.checkpoint:
            cause = Cause("other_checkpoint", {"checkpoint": other.hf_id or other.precision})
            yield cause, replace(request, checkpoint=other)


def memory_cause(
    code: str, start: Observation, result: SizingResult, *, too_much: bool
) -> Cause | None:
    """Why another term than the weights lies outside its range."""
    if result.request.gpu.integrated_memory and code in {"non_torch", "available_kv_cache"}:
        return Cause("shared_memory")
    if code == "peak_activation":
        return _peak_cause(result, start, too_much=too_much)
    if code == "non_torch":
        return _non_torch_cause(start, result) if too_much else Cause("unexplained")
    if code == "cudagraph_estimate":
        if {"max_cudagraph_capture_size", "cudagraph_mode"} & start.explicit_args:
            return Cause("capture_sizes")
        return Cause("graphs_vary" if start.vllm_version else "release_unknown")
    if code == "available_kv_cache":
        if too_much and result.warm_concurrency is not None:
            return Cause("compile_cache_filled")
        return _foreign(start) or _by_release(start)
    return Cause("unexplained")


def _peak_cause(result: SizingResult, start: Observation, *, too_much: bool) -> Cause:
    eager = result.resolved is not None and result.resolved.enforce_eager
    if too_much:
        if result.request.model.multimodal:
            return Cause("encoder_profiled")
        return _by_release(start) if eager else Cause("compile_cache_empty")
    printed = (start.observed.peak_activation_gib or 0.0) * GIB
    predicted = next(term.likely for term in result.memory if term.code == "peak_activation")
    by_choice = result.request.release.number[:2] <= _FLASHINFER_BY_CHOICE
    if by_choice and printed < _FEW_SAMPLER * predicted:
        return Cause("flashinfer_sampler")
    if result.warm_concurrency is not None:
        return Cause("compile_cache_filled")
    return _by_release(start)


def _non_torch_cause(start: Observation, result: SizingResult) -> Cause:
    if result.request.layout.cards_per_engine > 1:
        return Cause("nccl_buffers")
    if start.observed.free_memory_gib is None:
        return Cause("other_process")
    return _foreign(start) or _by_release(start)


def _foreign(start: Observation) -> Cause | None:
    """Another process on the card, where far less than the card was free at start."""
    total, free = start.observed.total_memory_gib, start.observed.free_memory_gib
    if total is None or free is None or total - free <= _FOREIGN_GIB:
        return None
    return Cause("other_process", {"used_gib": total - free})


def _by_release(start: Observation) -> Cause:
    return Cause("unexplained" if start.vllm_version else "release_unknown")
