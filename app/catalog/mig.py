"""MIG slices: `data/mig/*.toml`, each a card of its own, cut from one of `data/gpus/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from app.catalog.facts import Fact, Slug, StrictModel
from app.catalog.gpus import CatalogueGpu
from app.catalog.problems import Problem, file_label, misnamed, read_file

MIB_PER_GIB = 1024


class SliceRow(StrictModel):
    """One profile. `memory_gib` is what `nvidia-smi mig -lgip` prints for an instance."""

    profile: Annotated[str, Field(pattern=r"^[1-7]g\.[0-9]{1,3}gb$")]
    instances: Annotated[int, Field(ge=1, le=7)]
    memory_gib: Fact[Annotated[float, Field(gt=1, le=1024)]]


class MigFile(StrictModel):
    """The slices of one card, one file."""

    gpu: Slug
    slices: Annotated[list[SliceRow], Field(min_length=1)]


def load_slices(
    folder: Path, gpus: Mapping[str, CatalogueGpu], problems: list[Problem]
) -> dict[str, CatalogueGpu]:
    """Read every slice, by slug; what is wrong is added to `problems` and the file left out."""
    slices: dict[str, CatalogueGpu] = {}
    for path in sorted(folder.glob("*.toml")):
        row = read_file(path, MigFile, problems)
        if row is None:
            continue
        before = len(problems)
        problems.extend(_contradictions(path, row, gpus))
        if len(problems) == before:
            cut = (_slice(gpus[row.gpu], each) for each in row.slices)
            slices.update({each.slug: each for each in cut})
    return slices


def _slice(card: CatalogueGpu, row: SliceRow) -> CatalogueGpu:
    """Return the card that a slice is: what no source gives for it is unknown."""
    slug, name = f"{card.slug}-mig-{row.profile}", f"{card.name} MIG {row.profile}"
    memory = row.memory_gib
    mib = int(memory.value * MIB_PER_GIB)
    facts = card.facts.model_copy(
        update={
            "slug": slug,
            "name": name,
            "log_names": [name],
            "unknown": ["total_memory_gib", "memory_bandwidth_gb_s", "tdp_watts"],
            "memory_gb": Fact[int](
                value=int(row.profile.partition(".")[2].removesuffix("gb")),
                sure=memory.sure,
                source=memory.source,
            ),
            "driver_memory_mib": Fact[int](value=mib, sure=memory.sure, source=memory.source),
            "total_memory_gib": None,
            "memory_bandwidth_gb_s": None,
            "tdp_watts": None,
            "nvlink": Fact[bool](value=False, sure="published", source="MIG user guide: no P2P"),
            "nvlink_gb_s": None,
        }
    )
    spec = replace(
        card.spec,
        slug=slug,
        name=name,
        driver_memory_mib=mib,
        total_memory_bytes=None,
        nvlink=False,
        tdp_watts=None,
        mig_of=card.slug,
        mig_profile=row.profile,
        mig_instances=row.instances,
    )
    return CatalogueGpu(spec, facts)


def _contradictions(path: Path, row: MigFile, gpus: Mapping[str, CatalogueGpu]) -> list[Problem]:
    def problem(field: str, message: str) -> Problem:
        return Problem(file_label(path), row.gpu, field, message)

    found = misnamed(path, row.gpu, "gpu")
    card = gpus.get(row.gpu)
    if card is None:
        return [*found, problem("gpu", f"is {row.gpu!r}, and there is no gpus/{row.gpu}.toml.")]
    profiles = [each.profile for each in row.slices]
    found.extend(
        problem("slices.profile", f"lists {profile!r} twice. Keep it once.")
        for profile in sorted({each for each in profiles if profiles.count(each) > 1})
    )
    driver = card.spec.driver_memory_mib
    for each in row.slices:
        together = each.instances * each.memory_gib.value
        if driver is not None and together * MIB_PER_GIB > driver:
            message = (
                f"is {each.memory_gib.value} GiB; {each.instances} of {each.profile} are more than "
                f"the card's {driver} MiB. Check both."
            )
            found.append(problem("slices.memory_gib", message))
    return found
