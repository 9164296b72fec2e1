"""Which model and which checkpoint the answers mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import precisions_of
from app.catalog.config_model import ConfigModel, model_from_config
from app.catalog.hf_config import ConfigError, knows_architecture
from app.catalog.model_search import FoundModel, find_model, nearest_models
from app.catalog.models import CatalogueModel
from app.catalog.supposed_checkpoint import suppose_checkpoint
from app.core.checkpoint import Checkpoint
from app.core.model_spec import ModelSpec
from app.core.reasons import Reason, ReasonCode, Refusal
from app.core.result import Assumption
from app.wizard.answers import Answers, Problem, nearest_name
from app.wizard.readers import canonical_json

UNSURE_PRECISION: Final = "fp8"
NESTED_CONFIGS: Final = ("text_config", "vision_config", "audio_config")
_REFUSALS: Final[Mapping[str, ReasonCode]] = {
    "architecture_unknown": "architecture_unknown",
    "quantization_not_supported": "quantization_not_supported",
    "quantization_pattern_unknown": "quantization_not_supported",
}


class UnusableAnswerError(ValueError):
    """An answer that the catalogue, or the config pasted, cannot give a value for."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem for the page."""
        super().__init__(problem.code)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model with one checkpoint; `entry` is None for a pasted config."""

    entry: CatalogueModel | None
    spec: ModelSpec
    checkpoint: Checkpoint
    assumptions: tuple[Assumption, ...] = ()


def choose_model(answers: Answers, catalogue: Catalogue) -> ModelChoice:
    """Find model and checkpoint.

    Raises UnusableAnswerError, and Refusal for an architecture or a quantisation that is unknown.
    """
    if answers.hf_config is not None:
        return _pasted(answers)
    if answers.model is None:
        raise UnusableAnswerError(Problem("missing", "model", ""))
    found = find_model(catalogue.models, answers.model)
    if found is None:
        near = nearest_models(catalogue.models, answers.model, 1)
        nearest = near[0].slug if near else ""
        raise UnusableAnswerError(
            Problem("unknown_model", "model", answers.model, (("nearest", nearest),))
        )
    checkpoint, assumptions = _checkpoint(answers, found, catalogue)
    entry = found.model
    overrides = json.loads(answers.hf_overrides) if answers.hf_overrides else {}
    if overrides:
        config = _overridden(entry.config_of(checkpoint.hf_id), overrides)
        spec = _read(config, "hf_overrides")
    else:
        spec = _entry_spec(entry, checkpoint.hf_id)
    return ModelChoice(entry, spec, checkpoint, assumptions)


def _entry_spec(entry: CatalogueModel, hf_id: str) -> ModelSpec:
    try:
        return entry.spec_of(hf_id)
    except ConfigError as error:
        # the catalogue's config is nobody's entry to mend
        names = entry.config.get("architectures") or [entry.slug]
        numbers = (("architecture", str(names[0])), *error.numbers)
        raise Refusal(Reason("architecture_unknown", tuple(dict(numbers).items()))) from None


def _checkpoint(
    answers: Answers, found: FoundModel, catalogue: Catalogue
) -> tuple[Checkpoint, tuple[Assumption, ...]]:
    entry = found.model
    if "checkpoint" in answers.unsure:
        chosen = (entry.select(UNSURE_PRECISION) or entry.select())[0]
        not_sure = Assumption("not_sure", (("field", "checkpoint"), ("value", chosen.hf_id)))
        return chosen.checkpoint, (not_sure,)
    if answers.checkpoint is None:
        if found.checkpoint is not None:
            return found.checkpoint.checkpoint, ()
        chosen = entry.select()[0]
        return chosen.checkpoint, (
            Assumption("default_checkpoint", (("checkpoint", chosen.hf_id),)),
        )
    wanted = answers.checkpoint.casefold()
    matching = entry.select(wanted)
    if not matching:
        return _supposed(answers.checkpoint, entry, catalogue)
    chosen = matching[0]
    if chosen.hf_id.casefold() == wanted:
        return chosen.checkpoint, ()
    values = (
        ("precision", wanted),
        ("checkpoint", chosen.hf_id),
        ("matching", len(matching)),
    )
    return chosen.checkpoint, (Assumption("checkpoint_chosen", values),)


def _supposed(
    wanted: str, entry: CatalogueModel, catalogue: Catalogue
) -> tuple[Checkpoint, tuple[Assumption, ...]]:
    """Suppose a checkpoint of a precision that nobody published for this model."""
    everything = (each for model in catalogue.models.values() for each in model.checkpoints)
    supposed = suppose_checkpoint(
        wanted.casefold(),
        everything,
        has_experts=bool(_entry_spec(entry, entry.hf_id).num_experts),
        includes=entry.select()[0].checkpoint.includes,
    )
    if supposed is None:
        known = [*(each.hf_id for each in entry.checkpoints), *precisions_of(entry.checkpoints)]
        numbers = (("nearest", nearest_name(wanted, known)), ("model", entry.slug))
        raise UnusableAnswerError(Problem("unknown_checkpoint", "checkpoint", wanted, numbers))
    values = (("precision", supposed.checkpoint.precision), ("like", supposed.like))
    return supposed.checkpoint, (Assumption("checkpoint_supposed", values),)


def _pasted(answers: Answers) -> ModelChoice:
    """Read a config that was pasted, or looked up where a revision says of which repository."""
    looked_up = answers.model is not None and answers.revision is not None
    if answers.model is not None and not looked_up:
        raise UnusableAnswerError(Problem("pasted_and_named", "model", answers.model))
    if answers.checkpoint is not None:
        raise UnusableAnswerError(Problem("pasted_and_named", "checkpoint", answers.checkpoint))
    config = json.loads(answers.hf_config or "{}")
    if answers.hf_overrides is not None:
        config = _overridden(config, json.loads(answers.hf_overrides))
    assume = answers.assume_plain_decoder
    try:
        made = _read_model(
            canonical_json(config),
            answers.hf_quant_config,
            answers.model or "",
            assume_unknown=assume,
        )
    except ConfigError as error:
        raise _unusable(error, _file_of(error)) from None
    source = Assumption("config_pasted")
    if looked_up:
        values = (("model", answers.model or ""), ("revision", answers.revision or ""))
        source = Assumption("config_looked_up", values)
    if assume and not knows_architecture(config):
        named = (("architecture", made.spec.architecture),)
        assumed = Assumption("plain_decoder_assumed", named)
        return ModelChoice(None, made.spec, made.checkpoint, (source, assumed))
    return ModelChoice(None, made.spec, made.checkpoint, (source,))


@lru_cache(maxsize=64)
def _read_model(
    text: str, quant_text: str | None, hf_id: str, *, assume_unknown: bool
) -> ConfigModel:
    """Read a config once: the core's caches key on the identity of the spec."""
    quant_config = json.loads(quant_text) if quant_text else None
    return model_from_config(
        json.loads(text), quant_config, hf_id=hf_id, assume_unknown=assume_unknown
    )


def _file_of(error: ConfigError) -> str:
    """Name the input that a fault lies in: keys of the second file carry its name."""
    key = str(dict(error.numbers).get("key", ""))
    return "hf_quant_config" if key.startswith("hf_quant_config.") else "hf_config"


def _read(config: Mapping[str, Any], field: str) -> ModelSpec:
    try:
        return _read_model(canonical_json(config), None, "", assume_unknown=False).spec
    except ConfigError as error:
        raise _unusable(error, field) from None


def _unusable(error: ConfigError, field: str) -> Exception:
    if error.code in _REFUSALS:
        return Refusal(Reason(_REFUSALS[error.code], error.numbers))
    return UnusableAnswerError(Problem(error.code, field, "", error.numbers))


def _overridden(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `--hf-overrides` over a config: nested configs are merged, everything else replaced."""
    merged = dict(config)
    for key, value in overrides.items():
        inner = merged.get(key)
        if key in NESTED_CONFIGS and isinstance(inner, dict) and isinstance(value, dict):
            merged[key] = _overridden(inner, value)
        else:
            merged[key] = value
    return merged
