"""How a model is split over cards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """vLLM's parallel sizes, plus `replicas`: separate copies behind a load balancer.

    One data-parallel engine spans `tensor_parallel_size x pipeline_parallel_size` cards and
    prints its own log line. Decode context parallelism reuses the tensor-parallel cards.
    """

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    replicas: int = 1

    @property
    def cards_per_engine(self) -> int:
        """Cards that one engine (one log line) spans."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def engines(self) -> int:
        """Engines with a KV cache of their own, over all copies."""
        return self.data_parallel_size * self.replicas

    @property
    def cards(self) -> int:
        """Cards of the whole layout."""
        return self.cards_per_engine * self.engines
