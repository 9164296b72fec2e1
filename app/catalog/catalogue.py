"""The catalogue: everything in `data/` that a sizing can be about, read once and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.catalog.gpus import CatalogueGpu, load_gpus
from app.catalog.mig import load_slices
from app.catalog.models import CatalogueModel, load_models
from app.catalog.problems import CatalogueError, Problem
from app.catalog.releases import Releases, load_releases
from app.catalog.servers import Server, load_servers
from app.catalog.vendors import Vendor, load_vendor

_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Models, cards and servers by slug, releases, the vendor, and the date of all that.

    `gpus` are whole cards, `slices` what MIG cuts from them: lists go through the former, a named
    card may be either.
    """

    models: Mapping[str, CatalogueModel]
    gpus: Mapping[str, CatalogueGpu]
    slices: Mapping[str, CatalogueGpu]
    servers: Mapping[str, Server]
    releases: Releases
    vendor: Vendor
    data_version: str

    def card(self, slug: str) -> CatalogueGpu | None:
        """Find a whole card or a slice by its slug; None where there is none."""
        return self.gpus.get(slug) or self.slices.get(slug)


def load_catalogue(data: Path, vendor: str = "default") -> Catalogue:
    """Read and check the folder `data`, with the vendor of that name.

    Raises CatalogueError with every problem of every file: file, row, field, and what to do.
    """
    problems: list[Problem] = []
    gpus = load_gpus(data / "gpus", problems)
    slices = load_slices(data / "mig", gpus, problems)
    servers = load_servers(data / "servers", gpus, problems)
    models = load_models(data / "models", problems)
    seller = load_vendor(data / "vendors" / f"{vendor}.toml", gpus, servers, problems)
    releases = _releases(data / "vllm", problems)
    version = _version(data / "VERSION", problems)
    for folder, found in (("gpus", gpus), ("servers", servers), ("models", models)):
        if not found and not any(problem.file.startswith(folder) for problem in problems):
            problems.append(Problem(f"{folder}/", "the folder", "(files)", "is empty. Add some."))
    if problems or seller is None or releases is None:
        raise CatalogueError(problems)
    return Catalogue(
        models=MappingProxyType(models),
        gpus=MappingProxyType(gpus),
        slices=MappingProxyType(slices),
        servers=MappingProxyType(servers),
        releases=releases,
        vendor=seller,
        data_version=version,
    )


def _releases(folder: Path, problems: list[Problem]) -> Releases | None:
    try:
        return load_releases(folder)
    except (ValueError, OSError) as error:
        problems.append(Problem("vllm/releases.toml", "the whole file", "(see text)", str(error)))
        return None


def _version(path: Path, problems: list[Problem]) -> str:
    text = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    if not _VERSION.fullmatch(text):
        message = f"is {text!r}. Write the date of the data, like 2026-11-29."
        problems.append(Problem("VERSION", "the whole file", "(its text)", message))
    return text
