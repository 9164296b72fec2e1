"""Finds the family of a config and builds its tensor groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.catalog.hf_fields import ConfigError, Fields, text_fields
from app.catalog.hf_tensors.audio import gemma4_audio
from app.catalog.hf_tensors.decoder import Traits, decoder
from app.catalog.hf_tensors.deepseek_v4 import deepseek_v4
from app.catalog.hf_tensors.drafts import nextn_layers
from app.catalog.hf_tensors.families import ARCHITECTURES, FAMILIES, MODEL_TYPES
from app.catalog.hf_tensors.gated_delta import gated_delta_decoder
from app.catalog.hf_tensors.gemma import gemma3, gemma4
from app.catalog.hf_tensors.kimi import kimi_linear
from app.catalog.hf_tensors.llama4 import llama4
from app.catalog.hf_tensors.mamba import granite_hybrid, nemotron_h
from app.catalog.hf_tensors.minimax_m3 import minimax_m3
from app.catalog.hf_tensors.mla import mla_decoder
from app.catalog.hf_tensors.shape import LARGEST_SIZE
from app.catalog.hf_tensors.varied import decilm, mimo_v2
from app.catalog.hf_tensors.vision import moonvit, pixtral, qwen_vision, siglip
from app.catalog.hf_tensors.vision_wide import (
    gemma4_vision,
    llama4_vision,
    minimax_m3_vision,
    qwen2_5_vision,
)
from app.core.model_spec import TensorGroup

Builder = Callable[[Fields, Fields, Traits], list[TensorGroup]]
Tower = Callable[[Fields, int], list[TensorGroup]]

_merged_delta = partial(gated_delta_decoder, merged=True)
_split_delta = partial(gated_delta_decoder, merged=False)

# Families that are not plain decoders.
BUILDERS: dict[str, Builder] = {
    "deepseek_v3": mla_decoder,
    "deepseek_v32": mla_decoder,
    "glm_moe_dsa": mla_decoder,
    "glm4_moe_lite": mla_decoder,
    "kimi_k2": mla_decoder,
    "kimi_k25": mla_decoder,
    "mistral4": mla_decoder,
    "deepseek_v4": deepseek_v4,
    "kimi_linear": kimi_linear,
    "kimi_k3": kimi_linear,
    "qwen3_next": _merged_delta,
    "qwen3_5": _split_delta,
    "qwen3_5_moe": _split_delta,
    "gemma3": gemma3,
    "gemma4": gemma4,
    "llama4": llama4,
    "nemotron-nas": decilm,
    "nemotron_h": nemotron_h,
    "granitemoehybrid": granite_hybrid,
    "mimo_v2_flash": mimo_v2,
    "minimax_m3": minimax_m3,
}
TOWERS: dict[str, Tower] = {
    "qwen3_vl": qwen_vision,
    "qwen3_vl_moe": qwen_vision,
    "qwen3_5": qwen_vision,
    "qwen3_5_moe": qwen_vision,
    "qwen2_5_vl": qwen2_5_vision,
    "gemma3": siglip,
    "gemma4": gemma4_vision,
    "llama4": llama4_vision,
    "kimi_k25": moonvit,
    "kimi_k3": moonvit,
    "minimax_m3": minimax_m3_vision,
}
# Families whose drafts follow DeepSeek-V3's layout.
NEXTN_FAMILIES = frozenset(
    {"deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "kimi_k2"}
)
# Of these, the ones whose files repeat neither embedding nor head.
NEXTN_WITHOUT_COPIES = frozenset({"glm_moe_dsa"})
# Towers that a config without a vision block has all the same, by its architecture.
_IMPLIED_TOWERS = frozenset({"Llama4ForConditionalGeneration"})


def architecture_of(config: Fields) -> str:
    """First entry of `architectures`; empty where the config names none."""
    names = config.texts("architectures")
    return names[0] if names else ""


def family_of(config: Fields, *, assume_unknown: bool = False) -> str:
    """Family by architecture, else by model_type; Mistral 3 and Kimi K2.5 wrap another one.

    Raises ConfigError `architecture_unknown`; with `assume_unknown` the config is read as a
    plain Llama-like decoder instead.
    """
    architecture, model_type = architecture_of(config), config.text("model_type")
    family = ARCHITECTURES.get(architecture, "")
    if not architecture:
        family = MODEL_TYPES.get(model_type, model_type)
    if family == "mistral3" and text_fields(config).has("kv_lora_rank"):
        return "mistral4"
    if family == "deepseek_v3" and model_type == "kimi_k2":
        return "kimi_k2"
    if family in FAMILIES:
        return family
    if assume_unknown:
        return "llama"
    raise ConfigError(
        "architecture_unknown", (("architecture", architecture), ("model_type", model_type))
    )


def tensor_groups(config: Fields, family: str) -> tuple[TensorGroup, ...]:
    """All tensors of a model, buffers and optional parts included. Raises ConfigError."""
    text = text_fields(config)
    traits = FAMILIES[family]
    groups = BUILDERS.get(family, decoder)(config, text, traits)
    if family in NEXTN_FAMILIES:
        drafts = nextn_layers(config, text, traits)
        shared = family not in NEXTN_WITHOUT_COPIES
        groups += [group for group in drafts if shared or group.part != "mtp_shared"]
    return tuple(groups + _towers(config, text, family))


def _towers(config: Fields, text: Fields, family: str) -> list[TensorGroup]:
    vision, audio = config.block("vision_config"), config.block("audio_config")
    hidden = text.integer("hidden_size", 1, high=LARGEST_SIZE)
    groups: list[TensorGroup] = []
    if vision.text("model_type") == "pixtral":
        groups += pixtral(config, vision, hidden)
    elif family in TOWERS and (vision.values or architecture_of(config) in _IMPLIED_TOWERS):
        groups += TOWERS[family](vision, hidden)
    if family == "gemma4" and config.has("audio_config"):
        groups += gemma4_audio(audio, hidden)
    return groups
