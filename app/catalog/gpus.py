"""Graphics cards: `data/gpus/*.toml`, and which card a log means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from app.catalog.facts import Fact, Slug, StrictModel, Text
from app.catalog.problems import Problem, file_label, misnamed, read_file
from app.core.gpu_spec import GpuSpec
from app.core.units import GIB

Positive = Annotated[float, Field(gt=0)]
GpuFactName = Literal[
    "compute_capability",
    "gfx_target",
    "driver_memory_mib",
    "total_memory_gib",
    "memory_bandwidth_gb_s",
    "tdp_watts",
    "nvlink_gb_s",
]

_BRANDS = {"nvidia", "amd", "intel", "instinct", "geforce", "tesla", "gpu", "graphics"}
_IN_BRACKETS = re.compile(r"\([^)]*\)")
_TOKEN = re.compile(r"[a-z0-9]+")
_GIGABYTES = re.compile(r"^([0-9]{2,3})g$")


class GpuFile(StrictModel):
    """One card, one file. `unknown` names the facts that no source gave: left out, not guessed."""

    slug: Slug
    name: Text
    vendor: Literal["NVIDIA", "AMD", "Intel"]
    log_names: Annotated[list[Text], Field(min_length=1)]
    form_factor: Text
    integrated_memory: bool = False
    note: str = ""
    unknown: Annotated[list[GpuFactName], Field(default_factory=list)]
    architecture: Fact[Text]
    compute_capability: Fact[Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]] | None = None
    gfx_target: Fact[Annotated[str, Field(pattern=r"^gfx[0-9a-f]+$")]] | None = None
    memory_gb: Fact[Annotated[int, Field(gt=0, le=1024)]]
    driver_memory_mib: Fact[Annotated[int, Field(gt=1024, le=1024 * 1024)]] | None = None
    total_memory_gib: Fact[Annotated[float, Field(gt=1, le=1024)]] | None = None
    memory_bandwidth_gb_s: Fact[Positive] | None = None
    tdp_watts: Fact[Annotated[int, Field(gt=0, le=5000)]] | None = None
    nvlink: Fact[bool]
    nvlink_gb_s: Fact[Positive] | None = None
    fp8: Fact[bool]
    fp4: Fact[bool]


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueGpu:
    """A card with what the core needs (`spec`) and every fact with its source (`facts`)."""

    spec: GpuSpec
    facts: GpuFile

    @property
    def slug(self) -> str:
        """The name in links and in the API."""
        return self.spec.slug

    @property
    def name(self) -> str:
        """The maker's name, as the driver prints it."""
        return self.spec.name

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the facts that no source gave."""
        return tuple(self.facts.unknown)


def load_gpus(folder: Path, problems: list[Problem]) -> dict[str, CatalogueGpu]:
    """Read every card; what is wrong is added to `problems` and the card left out."""
    gpus: dict[str, CatalogueGpu] = {}
    logged: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml"), key=lambda each: each.stem):
        facts = read_file(path, GpuFile, problems)
        if facts is None:
            continue
        before = len(problems)
        problems.extend(_contradictions(path, facts, logged))
        logged.update({name.casefold(): facts.slug for name in facts.log_names})
        if len(problems) == before:
            gpus[facts.slug] = CatalogueGpu(_spec(facts), facts)
    return gpus


def gpus_logged_as(gpus: Mapping[str, CatalogueGpu], logged_name: str) -> tuple[CatalogueGpu, ...]:
    """Find the cards that a log may mean by `logged_name`, by slug.

    One card when the driver's full name is given (`NVIDIA H100 80GB HBM3`), several when people
    wrote a short name (`H100`), none when no card fits. A slice is meant where `MIG` is written.
    """
    wanted = _tokens(logged_name)
    if not wanted:
        return ()
    exact = [
        gpu
        for gpu in gpus.values()
        if any(_tokens(name) == wanted for name in (gpu.slug, *gpu.facts.log_names))
    ]
    if exact:
        return tuple(exact)
    sliced = "mig" in wanted
    return tuple(
        gpu
        for gpu in gpus.values()
        if wanted <= _all_tokens(gpu) and bool(gpu.spec.mig_of) == sliced
    )


def _tokens(name: str) -> frozenset[str]:
    """Split a card's name into words; brands and brackets do not count, `80G` means `80GB`."""
    words = _TOKEN.findall(_IN_BRACKETS.sub(" ", name.casefold()))
    return frozenset(_GIGABYTES.sub(r"\1gb", word) for word in words if word not in _BRANDS)


def _all_tokens(gpu: CatalogueGpu) -> frozenset[str]:
    names = (gpu.slug, *gpu.facts.log_names)
    size = f"{gpu.facts.memory_gb.value}gb"
    return frozenset({size}.union(*(_tokens(name) for name in names)))


def _spec(facts: GpuFile) -> GpuSpec:
    capability = facts.compute_capability
    major, minor = map(int, capability.value.split(".")) if capability else (0, 0)
    total = facts.total_memory_gib
    driver = facts.driver_memory_mib
    return GpuSpec(
        slug=facts.slug,
        name=facts.name,
        architecture=facts.architecture.value,
        compute_capability=(major, minor) if capability else None,
        driver_memory_mib=driver.value if driver else None,
        total_memory_bytes=round(total.value * GIB) if total else None,
        integrated_memory=facts.integrated_memory,
        nvlink=facts.nvlink.value,
        tdp_watts=facts.tdp_watts.value if facts.tdp_watts else None,
    )


def _contradictions(path: Path, facts: GpuFile, logged: Mapping[str, str]) -> list[Problem]:
    """What a schema cannot see: names that clash, unknown facts that are known after all."""

    def problem(field: str, message: str) -> Problem:
        return Problem(file_label(path), facts.slug, field, message)

    found = misnamed(path, facts.slug)
    found.extend(
        problem("unknown", f"lists `{fact}`, which has a value. Remove one of the two.")
        for fact in facts.unknown
        if getattr(facts, fact) is not None
    )
    for name in facts.log_names:
        if name.casefold() in logged:
            other = logged[name.casefold()]
            found.append(problem("log_names", f"{name!r} already names {other}. Keep it in one."))
    driver, total = facts.driver_memory_mib, facts.total_memory_gib
    if driver and total and total.value * 1024 > driver.value * 1.001:
        found.append(
            problem(
                "total_memory_gib",
                f"is {total.value} GiB, more than the driver's {driver.value} MiB. "
                "vLLM never sees more than the driver; check both.",
            )
        )
    return found
