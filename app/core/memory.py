"""The memory of one card at start: weights, what the profile run takes, and what is left.

A start is measured by vLLM itself; before it, everything but the block arithmetic is an estimate.
Each term has a most likely value and two ends, in bytes per card; the ends of different terms are
combined as independent spreads, so the range of the sum is what nine of ten starts keep to.
Source: vllm/v1/worker/gpu_worker.py (determine_available_memory) and the observed starts in
data/measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.core.activations import (
    ACTIVATION_BYTES,
    embedding_bytes,
    expert_workspace_bytes,
    forward_bytes,
    sparse_workspace_bytes,
)
from app.core.coefficients import (
    NOTHING,
    Bounds,
    MemoryCoefficients,
    RunnerCoefficients,
    exactly,
    largest,
    total,
)
from app.core.engine import ResolvedEngineArgs
from app.core.model_spec import MlaSpec, ModelSpec, StateSpec
from app.core.request import SizingRequest

FULL_CAPTURE_SIZES = 51


class StageMemory(NamedTuple):
    """One pipeline stage's card before the cache is allocated, bytes.

    `available` is what is left for the cache within the budget: its `low` is the cautious end; it
    may be negative. `cold_peak` and `warm_peak` are the likely peak with an empty and with a filled
    compile cache.
    """

    requested: Bounds
    weights: Bounds
    peak_activation: Bounds
    persistent_buffers: Bounds
    non_torch: Bounds
    cudagraph_estimate: Bounds
    unexplained: Bounds
    available: Bounds
    cold_peak: float
    warm_peak: float

    def terms(self) -> tuple[tuple[str, Bounds], ...]:
        """Name what leaves the budget, in the order of the bar."""
        return (
            ("weights", self.weights),
            ("peak_activation", self.peak_activation),
            ("persistent_buffers", self.persistent_buffers),
            ("non_torch", self.non_torch),
            ("cudagraph_estimate", self.cudagraph_estimate),
        )

    def available_after(self, peak: float) -> float:
        """Likely memory left for the cache if the profile run peaked at `peak`, bytes."""
        return self.available.likely + self.peak_activation.likely - peak


def left_for_cache(requested: Bounds, taken: Iterable[Bounds], unexplained: Bounds) -> Bounds:
    """Requested memory minus every term; the spreads add up as independent ones do."""
    likely = requested.likely
    down = [requested.likely - requested.low, unexplained.high]
    up = [requested.high - requested.likely, -unexplained.low]
    for term in taken:
        likely -= term.likely
        down.append(term.high - term.likely)
        up.append(term.likely - term.low)
    return Bounds(likely - math.hypot(*down), likely, likely + math.hypot(*up))


class _Peak(NamedTuple):
    """Peak of the profile run: expected, with an empty and with a filled compile cache, bytes."""

    expected: Bounds
    cold: float
    warm: float


@dataclass(frozen=True, slots=True)
class Start:
    """One engine's start as the memory model sees it: request, resolved arguments, coefficients.

    `requested` is the budget of a card, `weights_bytes_per_stage` the predicted weights of each
    pipeline stage's rank.
    """

    request: SizingRequest
    resolved: ResolvedEngineArgs
    coefficients: MemoryCoefficients
    requested: Bounds
    weights_bytes_per_stage: tuple[int, ...]

    @property
    def model(self) -> ModelSpec:
        """The model that is served."""
        return self.request.model

    @property
    def runner(self) -> RunnerCoefficients:
        """Coefficients of the model runner that this start uses."""
        return self.coefficients.runners[self.resolved.model_runner]

    def stages(self) -> tuple[StageMemory, ...]:
        """Memory of each pipeline stage's card, first stage first.

        Stages that do not differ are worked out once: a pipeline may have a thousand.
        """
        sizes = self.weights_bytes_per_stage
        rows = [(size, at == 0, at == len(sizes) - 1) for at, size in enumerate(sizes)]
        kinds = {row: self._stage(row[0], first=row[1], last=row[2]) for row in dict.fromkeys(rows)}
        return tuple(kinds[row] for row in rows)

    def _stage(self, weights_bytes: int, *, first: bool, last: bool) -> StageMemory:
        peak = self._peak_activation(first=first, last=last)
        weights = _measured(self.request.measured.weights_bytes) or self._weights(weights_bytes)
        buffers = self._persistent_buffers(last=last)
        outside = self._non_torch()
        graphs = self._cudagraph_estimate()
        unexplained = self._unexplained()
        available = left_for_cache(
            self.requested, (weights, peak.expected, buffers, outside, graphs), unexplained
        )
        return StageMemory(
            self.requested,
            weights,
            peak.expected,
            buffers,
            outside,
            graphs,
            unexplained,
            available,
            peak.cold,
            peak.warm,
        )

    def _weights(self, weights_bytes: int) -> Bounds:
        method = self.request.checkpoint.quantization.method or ""
        return self.coefficients.weight_share(method).times(weights_bytes)

    def _peak_activation(self, *, first: bool, last: bool) -> _Peak:
        measured = self.request.measured.peak_activation_bytes
        if measured is not None:
            return _Peak(exactly(measured), measured, measured)
        phases = largest(self._phases(first=first, last=last))
        compiling = NOTHING
        if (first or last) and not self.resolved.enforce_eager:
            table = embedding_bytes(self.model, self.request.layout.tensor_parallel_size)
            compiling = self.coefficients.cold_compile.times(table)
        return _Peak(
            expected=largest((phases, compiling)),
            cold=max(phases.likely, compiling.high),
            warm=phases.likely,
        )

    def _phases(self, *, first: bool, last: bool) -> Iterator[Bounds]:
        """Peaks of the profile run that do not overlap, apart from compiling.

        The hidden states of all tokens stay alive through forward pass and sampler.
        """
        model, layout, tokens = (
            self.model,
            self.request.layout,
            self.resolved.max_num_batched_tokens,
        )
        hidden = ACTIVATION_BYTES * tokens * model.hidden_size
        yield exactly(forward_bytes(model, layout.tensor_parallel_size, tokens) + hidden)
        if not self.coefficients.moe_workspace_kept:
            yield exactly(expert_workspace_bytes(model, layout, tokens) + hidden)
        if last:
            rows = min(tokens, self.resolved.max_num_seqs)
            yield self.runner.sampler_bytes_per_logit.times(rows * model.vocab_size).plus(hidden)
        if first and profiles_encoder(model, self.resolved):
            yield self.coefficients.encoder(model.model_type)

    def _persistent_buffers(self, *, last: bool) -> Bounds:
        if self.request.measured.non_torch_bytes is not None:
            return NOTHING
        experts = 0
        if self.coefficients.moe_workspace_kept:
            experts = expert_workspace_bytes(
                self.model, self.request.layout, self.resolved.max_num_batched_tokens
            )
        sparse = sparse_workspace_bytes(
            self.model, self.resolved.max_model_len, self.coefficients.sparse_workspace_rows
        )
        state = self.runner.sampler_state_bytes_per_logit if last else 0.0
        rows = self.resolved.max_num_seqs * self.model.vocab_size
        return exactly(max(experts, sparse) + state * rows)

    def _non_torch(self) -> Bounds:
        measured = self.request.measured.non_torch_bytes
        if measured is not None:
            return exactly(measured)
        alone = self.request.layout.cards_per_engine == 1
        coefficients = self.coefficients
        held = coefficients.non_torch_bytes if alone else coefficients.non_torch_group_bytes
        if not self.request.gpu.integrated_memory:
            return held
        return total((held, coefficients.integrated_bytes))

    def _cudagraph_estimate(self) -> Bounds:
        measured = self.request.measured.cudagraph_bytes
        if measured is not None:
            return exactly(measured)
        if not self.request.release.cudagraph_estimate_subtracted:
            return NOTHING
        return self.captured_graphs()

    def captured_graphs(self) -> Bounds:
        """CUDA graphs of one card, whether or not this release counts them before the cache."""
        if self.resolved.enforce_eager:
            return NOTHING
        runner, share = self.runner, self.resolved.cudagraph_capture_sizes / FULL_CAPTURE_SIZES
        layers = runner.graph_layer_bytes.times(share * self.model.num_hidden_layers)
        family = runner.graph_bytes[graph_family(self.model)].times(share)
        return total((runner.graph_base_bytes, layers, family))

    def _unexplained(self) -> Bounds:
        measured = self.request.measured
        complete = None not in (measured.peak_activation_bytes, measured.non_torch_bytes)
        if complete and not measured.is_carried_over:
            return NOTHING
        return self.coefficients.unexplained_bytes


def _measured(value: int | None) -> Bounds | None:
    return None if value is None else exactly(value)


def profiles_encoder(model: ModelSpec, resolved: ResolvedEngineArgs) -> bool:
    """Whether the profile run feeds an encoder: not in text-only mode, not with all limits at 0."""
    if not model.multimodal or resolved.language_model_only:
        return False
    limits = resolved.limit_mm_per_prompt
    return limits is None or any(count for _, count in limits)


@lru_cache(maxsize=1024)
def graph_family(model: ModelSpec) -> str:
    """Kind of model by what its graphs cost: `dense`, `moe`, `hybrid`, `mla` or `sparse_mla`."""
    caches = [layer.cache for layer in model.layers]
    latent = [cache for cache in caches if isinstance(cache, MlaSpec)]
    if any(cache.sparse for cache in latent):
        return "sparse_mla"
    if latent:
        return "mla"
    if any(isinstance(cache, StateSpec) for cache in caches):
        return "hybrid"
    return "moe" if model.num_experts else "dense"
