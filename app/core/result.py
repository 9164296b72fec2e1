"""The answer to a sizing, as data."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.engine import ResolvedEngineArgs
from app.core.reasons import Number, Reason
from app.core.request import SizingRequest


@dataclass(frozen=True, slots=True)
class Range:
    """A value with the range that nine of ten starts fall in.

    `low` is the cautious end for what is left for the cache.
    """

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """One term of a card's memory, bytes; the terms' `likely` sum to the card's total.

    Codes: weights, peak_activation, persistent_buffers, non_torch, cudagraph_estimate, kv_cache,
    other_processes (where there are any), outside_utilization.
    """

    code: str
    low: int
    likely: int
    high: int
    source: str


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """One KV cache group as vLLM forms it; `page_size_bytes` is one layer's block on one rank."""

    kind: str
    num_layers: int
    block_size: int
    page_size_bytes: int
    blocks_per_request: int


@dataclass(frozen=True, slots=True)
class Cache:
    """The block arithmetic for one engine: what vLLM prints.

    `max_concurrency` is the unrounded float; the log prints two decimals as `%.2f` does.
    """

    num_gpu_blocks: int
    block_size: int
    bytes_per_block: int
    blocks_per_request: int
    kv_cache_size_tokens: int
    max_concurrency: float
    max_model_len: int
    groups: tuple[CacheGroup, ...]


@dataclass(frozen=True, slots=True)
class Planning:
    """The vendor's planning rule over all copies; never negative."""

    pool_bytes: int
    kv_cache_size_tokens: int
    max_concurrency: float
    requests: int


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the answer took for granted, as a code with values."""

    code: str
    values: tuple[tuple[str, Number], ...] = ()


@dataclass(frozen=True, slots=True)
class SizingResult:
    """The answer. With `reason` set vLLM would refuse, and `cache` is None.

    `cache` is also None where no memory is estimated (a release without estimate and no given
    memory); an assumption says so. `available_kv_cache_memory` in bytes per card. The ranges are
    None when the arithmetic is exact (given memory). `verdict_requests` = min(planning requests,
    floor(low expected concurrency)) over all engines. `cold_concurrency` and `warm_concurrency`
    are set where an empty and a filled compile cache give different figures. `widest_term` is the
    code of the term behind most of the range (`unexplained` and `total_memory` beside those of
    `memory`). `total_memory_bytes` is what vLLM sees of one card, None where it is unknown.
    """

    request: SizingRequest
    resolved: ResolvedEngineArgs | None
    reason: Reason | None
    cache: Cache | None
    weights_bytes_per_rank: int | None
    checkpoint_bytes: int | None
    memory: tuple[MemoryTerm, ...]
    available_kv_cache_memory: Range | None
    tokens_range: Range | None
    concurrency_range: Range | None
    planning: Planning | None
    verdict_requests: int
    log_lines: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    cold_concurrency: float | None = None
    warm_concurrency: float | None = None
    widest_term: str | None = None
    total_memory_bytes: int | None = None

    @property
    def ok(self) -> bool:
        """True when vLLM would start."""
        return self.reason is None
