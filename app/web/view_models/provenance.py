"""Where a model and its checkpoint are from, how sure that is, and what nobody knows of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.catalog.checkpoints import CatalogueCheckpoint
from app.catalog.models import CatalogueModel, Unknown
from app.wizard.sizing_request import Prepared

# Unknown facts that change no figure.
OF_NO_CONSEQUENCE: Final = frozenset({"license", "gated", "context_length"})


@dataclass(frozen=True, slots=True)
class Origin:
    """One fact: `fact` is `config`, `weights` or `quantization`, `sure` a code of the catalogue."""

    fact: str
    sure: str
    source: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origins of what the figures rest on, and codes of what is missing."""

    origins: tuple[Origin, ...]
    unknowns: tuple[Unknown, ...]


def provenance_of(prepared: Prepared) -> Provenance | None:
    """Say it for a model of the catalogue; None for a pasted one, whose source the person knows."""
    model, request = prepared.model, prepared.request
    if model is None or request is None:
        return None
    hf_id = request.checkpoint.hf_id
    checkpoint = next((each for each in model.checkpoints if each.hf_id == hf_id), None)
    return Provenance(
        origins=tuple(_origins(model, checkpoint)),
        unknowns=tuple(_unknowns(model, checkpoint)),
    )


def _origins(model: CatalogueModel, checkpoint: CatalogueCheckpoint | None) -> Iterator[Origin]:
    yield Origin("config", model.row.config_sure, model.row.config_source)
    if checkpoint is None:
        return
    row = checkpoint.row
    if row.weights_bytes is not None:
        yield Origin("weights", row.weights_bytes.kind, row.weights_bytes.source)
    if row.quantization is not None:
        yield Origin("quantization", row.quantization.sure, row.quantization.source)


def _unknowns(model: CatalogueModel, checkpoint: CatalogueCheckpoint | None) -> Iterator[Unknown]:
    yield from (each for each in model.unknowns if each.code not in OF_NO_CONSEQUENCE)
    if checkpoint is not None:
        yield from (Unknown(code) for code in checkpoint.unknowns)
