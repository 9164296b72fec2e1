"""Which values a question offers, given what was answered before, and why some are not offered.

A value is tried by sizing the answers with it. What vLLM refuses whatever the memory (heads that do
not divide, a cache dtype the card cannot run) is shown disabled with its reason; what merely lacks
memory stays on offer, because another answer may make room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import CatalogueCheckpoint
from app.catalog.hf_config import ConfigError
from app.catalog.model_search import FoundModel, find_model
from app.core.reasons import Reason
from app.core.releases import Release
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.weights import checkpoint_bytes
from app.wizard.answers import Answers
from app.wizard.model_choice import UNSURE_PRECISION
from app.wizard.sizing_request import to_request

TENSOR_PARALLEL_SIZES: Final = (1, 2, 4, 8)
COMMON_KV_CACHE_DTYPES: Final = ("auto", "bfloat16", "fp8", "nvfp4")
NEVER_WORKS: Final = frozenset(
    {
        "heads_not_divisible",
        "kv_dtype_not_supported",
        "dcp_not_supported",
        "mig_not_joined",
        "expert_split_not_supported",
        "quantization_not_supported",
        "architecture_unknown",
    }
)


@dataclass(frozen=True, slots=True)
class Option:
    """One value of a field; `reason` is set where it cannot work with the answers so far."""

    value: str
    chosen: bool
    reason: Reason | None = None
    result: SizingResult | None = None

    @property
    def valid(self) -> bool:
        """True where the value may be chosen."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class CheckpointOption:
    """One checkpoint of the model. `weights_bytes` as the files have them, None where unknown."""

    checkpoint: CatalogueCheckpoint
    weights_bytes: int | None
    option: Option


def checkpoint_options(answers: Answers, catalogue: Catalogue) -> tuple[CheckpointOption, ...]:
    """Return the checkpoints of the model, the main one first; none for a pasted config."""
    found = find_model(catalogue.models, answers.model or "")
    if found is None:
        return ()
    current = _current_checkpoint(answers, found)
    ordered = sorted(found.model.checkpoints, key=lambda each: each.hf_id != found.model.hf_id)
    options = options_for(
        answers, catalogue, "checkpoint", (each.hf_id for each in ordered), current
    )
    return tuple(
        CheckpointOption(each, _weights_bytes(found, each), option)
        for each, option in zip(ordered, options, strict=True)
    )


def unsure_checkpoint(answers: Answers, catalogue: Catalogue) -> CatalogueCheckpoint | None:
    """Return what "I am not sure" stands for: FP8 where there is one, else the main checkpoint."""
    found = find_model(catalogue.models, answers.model or "")
    if found is None:
        return None
    return (found.model.select(UNSURE_PRECISION) or found.model.select())[0]


def kv_cache_dtype_options(
    answers: Answers, catalogue: Catalogue, release: Release | None = None
) -> tuple[Option, ...]:
    """Return the cache dtypes: the common ones, then what else the release accepts."""
    others = sorted(release.kv_cache_dtypes - set(COMMON_KV_CACHE_DTYPES)) if release else []
    values = (*COMMON_KV_CACHE_DTYPES, *others)
    return options_for(answers, catalogue, "kv_cache_dtype", values, answers.kv_cache_dtype)


def tensor_parallel_options(answers: Answers, catalogue: Catalogue) -> tuple[Option, ...]:
    """Return the sizes 1, 2, 4, 8, up to the cards of the server where one is chosen."""
    server = catalogue.servers.get((answers.server or "").lower())
    sizes = [each for each in TENSOR_PARALLEL_SIZES if server is None or each <= server.cards]
    current = str(answers.tensor_parallel_size)
    return options_for(answers, catalogue, "tensor_parallel_size", sizes, current)


def options_for(
    answers: Answers, catalogue: Catalogue, name: str, values: Iterable[str | int], current: str
) -> tuple[Option, ...]:
    """Try each value of a field. Without a card yet, nothing can be tried and all are valid."""
    return tuple(
        _tried(answers.with_changes(**{name: value}), catalogue, str(value), current)
        for value in values
    )


def _current_checkpoint(answers: Answers, found: FoundModel) -> str:
    """Id of the checkpoint the answers mean now; "" for one that is not of this model."""
    if answers.checkpoint is None and found.checkpoint is not None:
        return found.checkpoint.hf_id
    wanted = UNSURE_PRECISION if "checkpoint" in answers.unsure else answers.checkpoint
    matching = found.model.select(wanted or "")
    return matching[0].hf_id if matching else ""


def _weights_bytes(found: FoundModel, checkpoint: CatalogueCheckpoint) -> int | None:
    """Bytes of the files as computed from the shapes; None for a model nobody can read."""
    try:
        return checkpoint_bytes(found.model.spec_of(checkpoint.hf_id), checkpoint.checkpoint)
    except ConfigError:
        return None


def _tried(answers: Answers, catalogue: Catalogue, value: str, current: str) -> Option:
    chosen = value.casefold() == current.casefold()
    prepared = to_request(answers, catalogue)
    if prepared.request is None:
        return Option(value, chosen, prepared.reason)
    result = size(prepared.request)
    never = result.reason is not None and result.reason.code in NEVER_WORKS
    return Option(value, chosen, result.reason if never else None, result)
