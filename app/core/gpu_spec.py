"""A graphics card as vLLM and the driver see it."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.units import MIB


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card. Every figure that no source gives is None: unknown, not guessed.

    `driver_memory_mib` is what nvidia-smi prints (MiB), `total_memory_bytes` what
    cudaMemGetInfo reports to vLLM (bytes, smaller than the driver's figure). `platform` is the word
    that vLLM's start log begins with from 0.30.0 on. A MIG slice is a card of its own: `mig_of` is
    the slug of the card it is cut from, into at most `mig_instances` of that `mig_profile`.
    """

    slug: str
    name: str
    architecture: str
    compute_capability: tuple[int, int] | None
    driver_memory_mib: int | None
    total_memory_bytes: int | None
    integrated_memory: bool = False
    nvlink: bool | None = None
    tdp_watts: int | None = None
    platform: str = "GPU"
    mig_of: str = ""
    mig_profile: str = ""
    mig_instances: int = 0

    @property
    def driver_memory_bytes(self) -> int | None:
        """Memory the driver reports, in bytes; None where no source gives it."""
        return None if self.driver_memory_mib is None else self.driver_memory_mib * MIB
