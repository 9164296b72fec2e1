"""Everything a sizing depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.checkpoint import Checkpoint
from app.core.engine import EngineArgs
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.model_spec import ModelSpec
from app.core.releases import Release


@dataclass(frozen=True, slots=True)
class Measured:
    """Terms read from a start log (bytes per card); they replace the estimates.

    `taken_on` is the server they were read on: for another one they count as `core.carry_over`
    says. None: they count as they are. `is_carried_over` where they were read on another server:
    starts differ, so a range stays.
    """

    weights_bytes: int | None = None
    peak_activation_bytes: int | None = None
    non_torch_bytes: int | None = None
    cudagraph_bytes: int | None = None
    available_kv_cache_memory_bytes: int | None = None
    taken_on: SizingRequest | None = None
    is_carried_over: bool = False


@dataclass(frozen=True, slots=True)
class SizingRequest:
    """Everything an answer depends on.

    `gpu_total_memory_bytes` overrides what vLLM sees of the card (not the batch defaults' tier and
    not the planning rule). `other_processes_bytes` is what other processes hold on each card before
    vLLM starts.
    """

    model: ModelSpec
    checkpoint: Checkpoint
    gpu: GpuSpec
    release: Release
    layout: Layout = field(default_factory=Layout)
    engine_args: EngineArgs = field(default_factory=EngineArgs)
    measured: Measured = field(default_factory=Measured)
    gpu_total_memory_bytes: int | None = None
    other_processes_bytes: int = 0

    @property
    def given_cache_bytes(self) -> int | None:
        """Memory for the cache that somebody measured or fixed, bytes per card; None: estimated."""
        measured = self.measured.available_kv_cache_memory_bytes
        return self.engine_args.kv_cache_memory_bytes if measured is None else measured
