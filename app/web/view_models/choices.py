"""What the fields of a form offer: models, checkpoints, cards, servers, layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.catalog.catalogue import Catalogue
from app.catalog.gpus import CatalogueGpu
from app.catalog.model_search import search_models
from app.catalog.models import CatalogueModel
from app.catalog.servers import Server
from app.core.releases import Release
from app.wizard.answers import Answers
from app.wizard.options import (
    CheckpointOption,
    Option,
    checkpoint_options,
    kv_cache_dtype_options,
    tensor_parallel_options,
)

MAX_MODELS: Final = 200
CACHED: Final = 256


@dataclass(frozen=True, slots=True)
class Maker:
    """A maker with its models, by name."""

    name: str
    models: tuple[CatalogueModel, ...]


@dataclass(frozen=True, slots=True)
class CardGroup:
    """One card with the servers that have it, the smallest first."""

    gpu: CatalogueGpu
    servers: tuple[Server, ...]


def models_found(catalogue: Catalogue, query: str) -> tuple[CatalogueModel, ...]:
    """Return the models for a text typed so far, best first; all of them for none."""
    return search_models(catalogue.models, query, MAX_MODELS)


def makers_of(models: tuple[CatalogueModel, ...]) -> tuple[Maker, ...]:
    """Sort models under their makers, makers by name."""
    names = sorted({model.row.maker for model in models}, key=str.casefold)
    return tuple(
        Maker(name, tuple(model for model in models if model.row.maker == name)) for name in names
    )


def offered_cards(catalogue: Catalogue) -> tuple[CardGroup, ...]:
    """Return the vendor's cards with the vendor's servers."""
    vendor = catalogue.vendor
    servers = [catalogue.servers[slug] for slug in vendor.servers]
    return tuple(
        CardGroup(
            catalogue.gpus[slug],
            tuple(sorted((s for s in servers if s.gpu == slug), key=lambda each: each.cards)),
        )
        for slug in vendor.cards
    )


def other_cards(catalogue: Catalogue) -> tuple[CatalogueGpu, ...]:
    """Return every other card whose memory some source gives, by name."""
    known = (
        gpu
        for gpu in catalogue.gpus.values()
        if gpu.slug not in catalogue.vendor.cards and has_known_memory(gpu)
    )
    return tuple(sorted(known, key=lambda gpu: gpu.name.casefold()))


def has_known_memory(gpu: CatalogueGpu) -> bool:
    """Whether a card can be sized without a memory entered by hand."""
    return gpu.spec.driver_memory_bytes is not None or gpu.spec.total_memory_bytes is not None


@dataclass(frozen=True, slots=True)
class BenchChoices:
    """Everything that the workbench's fields offer for the answers so far."""

    models: tuple[CatalogueModel, ...]
    checkpoints: tuple[CheckpointOption, ...]
    kv_cache_dtypes: tuple[Option, ...]
    cards: tuple[CardGroup, ...]
    other_cards: tuple[CatalogueGpu, ...]
    slices: tuple[CatalogueGpu, ...]
    servers: tuple[Server, ...]
    tensor_parallel_sizes: tuple[Option, ...]
    releases: tuple[Release, ...]


class Choices:
    """Works out what the workbench offers for one catalogue, and keeps what was asked lately."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Start with nothing worked out."""
        self._catalogue = catalogue
        self.bench = lru_cache(maxsize=CACHED)(self._bench)

    def _bench(self, answers: Answers, release: Release | None) -> BenchChoices:
        """Try every value of the fields; `release` is None while its text cannot be read."""
        catalogue = self._catalogue
        return BenchChoices(
            models=models_found(catalogue, ""),
            checkpoints=checkpoint_options(answers, catalogue),
            kv_cache_dtypes=kv_cache_dtype_options(answers, catalogue, release),
            cards=offered_cards(catalogue),
            other_cards=other_cards(catalogue),
            slices=tuple(catalogue.slices.values()),
            servers=_servers_of(answers.gpu, catalogue.servers),
            tensor_parallel_sizes=tensor_parallel_options(answers, catalogue),
            releases=tuple(reversed(catalogue.releases.rows)),
        )


def _servers_of(gpu: str | None, servers: Mapping[str, Server]) -> tuple[Server, ...]:
    slug = (gpu or "").lower()
    return tuple(server for server in servers.values() if server.gpu == slug)
