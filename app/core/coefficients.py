"""What was measured about the memory beside weights and cache: coefficients with their spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

GraphFamily = str


class Bounds(NamedTuple):
    """A coefficient's most likely value and the ends that nine of ten starts keep to.

    `low` and `high` are of the coefficient itself: a high coefficient leaves little for the cache.
    """

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Bounds:
        """Turn a coefficient per unit into an amount."""
        return Bounds(self.low * factor, self.likely * factor, self.high * factor)

    def plus(self, amount: float) -> Bounds:
        """Add an amount without spread."""
        return Bounds(self.low + amount, self.likely + amount, self.high + amount)


NOTHING = Bounds(0.0, 0.0, 0.0)


def exactly(amount: float) -> Bounds:
    """Give an amount without spread."""
    return Bounds(amount, amount, amount)


def largest(terms: Iterable[Bounds]) -> Bounds:
    """Peak of phases that do not overlap: each bound is the largest of theirs."""
    low = likely = high = 0.0
    for term in terms:
        low, likely, high = max(low, term.low), max(likely, term.likely), max(high, term.high)
    return Bounds(low, likely, high)


def total(terms: Iterable[Bounds]) -> Bounds:
    """Sum of amounts whose ends come together."""
    low = likely = high = 0.0
    for term in terms:
        low, likely, high = low + term.low, likely + term.likely, high + term.high
    return Bounds(low, likely, high)


@dataclass(frozen=True, slots=True, eq=False)
class RunnerCoefficients:
    """What one model runner (V1, V2) of one release takes.

    sampler_bytes_per_logit        transient, per sampled row and vocabulary entry
    sampler_state_bytes_per_logit  kept, per max_num_seqs and vocabulary entry
    graph_base_bytes               graph estimate before the first capture size counts
    graph_layer_bytes              graph estimate of 51 capture sizes, per layer
    graph_bytes                    the part of it that does not depend on the layers, by family
    """

    sampler_bytes_per_logit: Bounds
    sampler_state_bytes_per_logit: float
    graph_base_bytes: Bounds
    graph_layer_bytes: Bounds
    graph_bytes: Mapping[GraphFamily, Bounds]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCoefficients:
    """Everything the memory model does not derive from shapes, for one release.

    runners                  by name, V1 and V2
    cold_compile             share of the embedding table that a start with an empty compile cache
                             allocates on top (0 where that release never does)
    moe_workspace_kept       the workspace of the experts stays allocated beside the sampler
    sparse_workspace_rows    rows per token of max_model_len that sparse MLA keeps for prefill: up
                             to 256k tokens, and above
    non_torch_bytes          context growth and libraries, one card
    non_torch_group_bytes    the same where tensor or pipeline parallelism talks over NCCL
    context_bytes            held outside the budget before the weights load, one card
    context_group_bytes      the same with NCCL
    integrated_bytes         extra on cards that share the host's memory
    weights                  loaded bytes over predicted bytes, by quantisation method ("" other)
    encoder_bytes            peak of the encoder of a multimodal model at start, by model type
                             (the longest prefix counts, "" for any other)
    driver_only_bytes        what the driver reports and cudaMemGetInfo does not
    observed_releases        versions of which starts were observed, oldest first
    unexplained_bytes        spread of starts that the terms do not explain (likely is 0)
    """

    runners: Mapping[str, RunnerCoefficients]
    cold_compile: Bounds
    moe_workspace_kept: bool
    sparse_workspace_rows: tuple[int, int]
    non_torch_bytes: Bounds
    non_torch_group_bytes: Bounds
    context_bytes: Bounds
    context_group_bytes: Bounds
    integrated_bytes: Bounds
    weights: Mapping[str, Bounds]
    encoder_bytes: Mapping[str, Bounds]
    driver_only_bytes: Bounds
    unexplained_bytes: Bounds
    observed_releases: tuple[str, ...]

    def weight_share(self, method: str) -> Bounds:
        """Loaded over predicted weights of a quantisation method."""
        return self.weights.get(method, self.weights[""])

    def encoder(self, model_type: str) -> Bounds:
        """Peak of the encoder of a model type: that of the longest matching prefix."""
        matching = [prefix for prefix in self.encoder_bytes if model_type.startswith(prefix)]
        return self.encoder_bytes[max(matching, key=len)]
