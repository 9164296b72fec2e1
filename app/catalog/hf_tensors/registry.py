"""Finds the family of a config and builds its tensor groups."""

from __future__ import annotations

from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.hf_tensors.decoder import Traits, decoder
from app.catalog.hf_tensors.families import ARCHITECTURES, FAMILIES
from app.core.model_spec import TensorGroup

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


def text_fields(config: Fields) -> Fields:
    """Return the part of a config that describes the language model."""
    for key in _NESTED:
        if config.has(key):
            return config.block(key)
    return config


def architecture_of(config: Fields) -> str:
    """First entry of `architectures`; empty where the config names none."""
    names = config.texts("architectures")
    return names[0] if names else ""


def family_of(config: Fields, *, assume_unknown: bool = False) -> str:
    """Family by architecture, else by model_type.

    Raises ConfigError `architecture_unknown`; with `assume_unknown` the config is read as a
    plain Llama-like decoder instead.
    """
    architecture = architecture_of(config)
    if architecture in ARCHITECTURES:
        return ARCHITECTURES[architecture]
    model_type = config.text("model_type")
    if not architecture and model_type in FAMILIES:
        return model_type
    if assume_unknown:
        return "llama"
    raise ConfigError(
        "architecture_unknown", (("architecture", architecture), ("model_type", model_type))
    )


def tensor_groups(config: Fields, family: str) -> tuple[TensorGroup, ...]:
    """All tensors of a model, buffers and optional parts included. Raises ConfigError."""
    text = text_fields(config)
    traits: Traits = FAMILIES[family]
    return tuple(decoder(config, text, traits))
