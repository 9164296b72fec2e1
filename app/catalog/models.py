"""Models of the catalogue: `data/models/*.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from app.catalog.checkpoints import (
    CatalogueCheckpoint,
    CheckpointRow,
    HfId,
    read_checkpoint,
    select_checkpoints,
)
from app.catalog.facts import Slug, StrictModel, Text
from app.catalog.hf_config import read_config
from app.catalog.problems import Location, Problem, file_label, misnamed, read_file
from app.catalog.runs import RunsError, expand_runs
from app.core.model_spec import ModelSpec
from app.core.storage_schemes import STORAGE_SCHEMES, UNQUANTIZED

ConfigSureness = Literal[
    "published", "quantized_sibling", "sibling", "transcribed", "reconstructed"
]


class ElementCountRow(StrictModel):
    """Whether the shapes give the element count the maker's files were counted to have."""

    result: Literal["exact", "differs", "not_published"]
    difference: int = 0
    note: str = ""


class ModelFile(StrictModel):
    """One model, one file. `null` where no source gave the fact.

    `config` holds the Hugging Face keys that decide memory, under their own names; long lists are
    written as runs (see `app/catalog/runs.py`). `config_sure`: `published` is the maker's own file,
    `quantized_sibling` that of a quantised repository of the same model, `sibling` of a model with
    the same shapes, `transcribed` was copied by somebody, `reconstructed` was put together until
    the element count fitted. `cache_not_checked` marks an architecture whose cache was compared
    with nothing outside this project.
    """

    slug: Slug
    name: Text
    maker: Text
    hf_id: HfId
    aliases: Annotated[list[Text], Field(default_factory=list)]
    license: str | None
    gated: bool | None
    context_length: Annotated[int, Field(gt=0)] | None
    config: dict[str, Any]
    config_sure: ConfigSureness
    config_source: Text
    note: str = ""
    element_count: ElementCountRow
    cache_not_checked: bool = False
    checkpoints: Annotated[list[CheckpointRow], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something the catalogue does not know of a model, as a code with values for the page."""

    code: str
    values: tuple[tuple[str, int | str], ...] = ()


@dataclass(frozen=True, eq=False)
class CatalogueModel:
    """A model with its checkpoints; `spec` is built from `config` when it is first asked for.

    Compared by identity, so that caches can key on it.
    """

    row: ModelFile
    config: Mapping[str, Any]
    checkpoints: tuple[CatalogueCheckpoint, ...]

    @property
    def slug(self) -> str:
        """The name in links and in the API."""
        return self.row.slug

    @property
    def name(self) -> str:
        """The name for people."""
        return self.row.name

    @property
    def hf_id(self) -> str:
        """The maker's main repository; also its main checkpoint."""
        return self.row.hf_id

    @cached_property
    def spec(self) -> ModelSpec:
        """The model as the core reads it; raises what `hf_config.read_config` raises."""
        return read_config(self.config)

    @cached_property
    def _changed_specs(self) -> Mapping[str, ModelSpec]:
        """Models of the checkpoints that differ in their config, by repository."""
        return {
            each.hf_id: read_config(self.config_of(each.hf_id))
            for each in self.checkpoints
            if each.row.config_changes is not None
        }

    def config_of(self, hf_id: str) -> Mapping[str, Any]:
        """Return the config of one checkpoint: the model's, with what differs in it."""
        rows = (each.row for each in self.checkpoints if each.hf_id == hf_id)
        changes = next((row.config_changes for row in rows), None)
        return self.config if changes is None else {**self.config, **changes.values}

    def spec_of(self, hf_id: str) -> ModelSpec:
        """Return the model as one checkpoint has it; the same object for the same config."""
        return self._changed_specs.get(hf_id, self.spec)

    @cached_property
    def unknowns(self) -> tuple[Unknown, ...]:
        """What the page has to mark as not known, or not read at its source."""
        row, count = self.row, self.row.element_count
        found: list[Unknown] = []
        if row.config_sure != "published":
            found.append(Unknown("config", (("how", row.config_sure),)))
        if count.result == "differs":
            found.append(Unknown("element_count_differs", (("difference", count.difference),)))
        elif count.result == "not_published":
            found.append(Unknown("element_count_not_published"))
        facts = (
            ("cache_not_checked", row.cache_not_checked),
            ("license", row.license is None),
            ("gated", row.gated is None),
            ("context_length", row.context_length is None),
        )
        found.extend(Unknown(code) for code, missing in facts if missing)
        return tuple(found)

    def select(self, wanted: str = "") -> tuple[CatalogueCheckpoint, ...]:
        """Find the checkpoints `wanted` means, the chosen one first (see select_checkpoints)."""
        return select_checkpoints(self.checkpoints, wanted, self.hf_id)


def load_models(folder: Path, problems: list[Problem]) -> dict[str, CatalogueModel]:
    """Read every model; what is wrong is added to `problems` and the model left out."""
    models: dict[str, CatalogueModel] = {}
    owners: dict[str, str] = {}
    for path in sorted(folder.glob("*.json"), key=lambda each: each.stem):
        row = read_file(path, ModelFile, problems, _row_name)
        if row is None:
            continue
        before = len(problems)
        problems.extend(_contradictions(path, row, owners))
        owners.update({each.hf_id.casefold(): row.slug for each in row.checkpoints})
        config = _expanded(path, row, problems)
        if len(problems) == before:
            checkpoints = tuple(read_checkpoint(each) for each in row.checkpoints)
            models[row.slug] = CatalogueModel(row, config, checkpoints)
    return models


def _expanded(path: Path, row: ModelFile, problems: list[Problem]) -> dict[str, Any]:
    try:
        return expand_runs(row.config)
    except RunsError as error:
        problems.append(Problem(file_label(path), row.slug, f"config.{error.key}", str(error)))
        return {}


def _row_name(document: dict[str, Any], location: Location) -> str:
    """Name the row a problem is in: the model, or one of its checkpoints by number and id."""
    slug = str(document.get("slug") or "the whole file")
    match location:
        case ("checkpoints", int(index), *_):
            checkpoint = document["checkpoints"][index]
            hf_id = checkpoint.get("hf_id") if isinstance(checkpoint, dict) else None
            return f"{slug}, checkpoint {index}" + (f" ({hf_id})" if hf_id else "")
    return slug


def _contradictions(path: Path, row: ModelFile, owners: Mapping[str, str]) -> list[Problem]:
    """What a schema cannot see: file name, repeated repositories, schemes nobody knows."""
    file = file_label(path)
    found = misnamed(path, row.slug)
    if row.hf_id not in {each.hf_id for each in row.checkpoints}:
        message = f"is {row.hf_id!r}, which is none of the checkpoints. Add it to them."
        found.append(Problem(file, row.slug, "hf_id", message))
    seen = dict(owners)
    for index, each in enumerate(row.checkpoints):
        where = f"{row.slug}, checkpoint {index} ({each.hf_id})"
        found.extend(
            Problem(file, where, field, message)
            for field, message in _checkpoint_problems(each, seen.get(each.hf_id.casefold()))
        )
        seen[each.hf_id.casefold()] = row.slug
    return found


def _checkpoint_problems(row: CheckpointRow, owner: str | None) -> Iterator[tuple[str, str]]:
    """Field and message of what is wrong with a checkpoint that `owner` may already have."""
    if owner is not None:
        yield "hf_id", f"also belongs to {owner}. Keep it in one place."
    for field, scheme in _schemes(row):
        if scheme not in STORAGE_SCHEMES and scheme != UNQUANTIZED:
            yield f"quantization.{field}", _unknown_scheme(scheme)
    if row.weights_bytes is None and not row.source:
        yield "source", "is missing. Say where it was seen."
    if (row.quantization is None) != (row.precision == "bf16"):
        message = f"and the precision {row.precision!r} contradict each other."
        yield "quantization", f"{message} Only `bf16` checkpoints have no quantization."


def _schemes(row: CheckpointRow) -> Iterator[tuple[str, str]]:
    if row.quantization is not None:
        yield from ((f"schemes.{key}", each) for key, each in row.quantization.schemes.items())
        yield from ((f"by_name.{key}", each) for key, each in row.quantization.by_name.items())


def _unknown_scheme(scheme: str) -> str:
    names = ", ".join(sorted(STORAGE_SCHEMES))
    return f"is {scheme!r}. Use one of {names}, or {UNQUANTIZED}."
