"""Servers to be started, and what vLLM computes for their ranks."""

from dataclasses import dataclass
from math import ceil
from typing import Final

from tests.readings.releases import number

GIB: Final = 2**30
_BLOCK: Final = 16
_RANK_DRIFT_GIB: Final = 0.04


@dataclass(frozen=True)
class Server:
    """A server to be started: model shapes, cards, arguments and what vLLM will measure."""

    name: str
    model: str
    layers: int
    kv_heads: int
    head_dim: int
    weights_gib: float
    total_gib: float
    free_gib: float
    max_model_len: int
    tensor_parallel_size: int = 1
    kv_bytes: int = 2
    gpu_memory_utilization: float | None = None
    activation_gib: float = 1.25
    non_torch_gib: float = 0.11
    estimate_gib: float = 0.65
    graphs_gib: float = 0.42
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 256


SERVERS: Final = (
    Server("small", "our-org/our-8B", 32, 8, 128, 14.99, 44.39, 43.9, 32_768),
    Server("pair", "our-org/our-70B-FP8", 80, 8, 128, 67.7, 94.97, 91.6, 131_072,
           tensor_parallel_size=2, kv_bytes=1, non_torch_gib=0.55, max_num_batched_tokens=8192,
           max_num_seqs=1024),
    Server("wide", "/models/our-32B", 64, 8, 128, 61.04, 79.19, 77.1, 40_960,
           tensor_parallel_size=4, gpu_memory_utilization=0.85, activation_gib=0.8),
    Server("tight", "our-org/our-14B", 40, 8, 128, 27.52, 31.36, 30.86, 2_048,
           gpu_memory_utilization=0.95, activation_gib=0.6, estimate_gib=0.1, graphs_gib=-0.03),
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What vLLM computes for one rank."""

    utilization: float
    requested: int
    available: int
    blocks: int
    tokens: int
    concurrency: float


def figures_of(version: str, server: Server, rank: int) -> Figures:
    """vLLM's sums for one rank; the last rank of a group has a little less."""
    default = 0.92 if number(version) >= (0, 20) else 0.9
    utilization = server.gpu_memory_utilization or default
    requested = ceil(server.total_gib * GIB * utilization)
    estimate = server.estimate_gib if number(version) >= (0, 20) else 0.0
    used = (
        round(server.weights_gib / server.tensor_parallel_size, 2)
        + server.activation_gib
        + server.non_torch_gib
        + estimate
        + (_RANK_DRIFT_GIB if rank and rank == server.tensor_parallel_size - 1 else 0.0)
    )
    available = requested - int(used * GIB)
    heads = max(1, server.kv_heads // server.tensor_parallel_size)
    block = 2 * server.layers * heads * server.head_dim * server.kv_bytes * _BLOCK
    blocks = available // block
    concurrency = blocks / ceil(server.max_model_len / _BLOCK)
    tokens = int(concurrency * server.max_model_len)
    if number(version) < (0, 21):
        tokens = blocks * _BLOCK
    return Figures(utilization, requested, available, blocks, tokens, concurrency)
