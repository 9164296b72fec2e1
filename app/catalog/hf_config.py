"""Turns a Hugging Face config.json into a ModelSpec."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.hf_defaults import completed
from app.catalog.hf_fields import ConfigError, Fields, text_fields
from app.catalog.hf_layers import cache_layers, has_sinks, length_spec, mm_prefix, mtp_layers
from app.catalog.hf_tensors import architecture_of, family_of, tensor_groups
from app.catalog.hf_tensors.decoder import decoder_shape
from app.catalog.hf_tensors.families import FAMILIES
from app.catalog.hf_tensors.shape import LARGEST_COUNT, Shape
from app.core.model_spec import ModelSpec, TensorGroup
from app.core.storage_schemes import DTYPE_BYTES

__all__ = ["ConfigError", "knows_architecture", "read_config"]

_EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
)


def read_config(config: Mapping[str, object], *, assume_unknown: bool = False) -> ModelSpec:
    """Read any config.json, text or multimodal.

    With `assume_unknown` an architecture that is not known is read as a plain decoder
    (attention with grouped heads, gated MLP); otherwise it is refused by name.
    Raises ConfigError, and nothing else, whatever the input.
    """
    family = family_of(Fields.of(config), assume_unknown=assume_unknown)
    fields = Fields(completed(config, family))
    text = text_fields(fields)
    return _model(fields, text, family, decoder_shape(fields, text, FAMILIES[family]))


def knows_architecture(config: Mapping[str, object]) -> bool:
    """Whether a config is read by what is known of its architecture, without an assumption."""
    try:
        family_of(Fields.of(config))
    except ConfigError as error:
        return error.code != "architecture_unknown"
    return True


def _model(fields: Fields, text: Fields, family: str, shape: Shape) -> ModelSpec:
    layers, tensors = cache_layers(fields.values), tensor_groups(fields, family)
    return ModelSpec(
        architecture=architecture_of(fields) or family,
        model_type=text.text("model_type", fields.text("model_type")),
        layers=layers,
        tensors=tensors,
        length=length_spec(fields.values),
        dtype=_dtype(fields, text),
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        vocab_size=shape.vocab_size,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        head_dim=shape.head_dim,
        tie_word_embeddings=shape.tie_word_embeddings,
        num_experts=max((group.count for group in tensors if group.module == "expert"), default=0),
        num_experts_per_tok=text.first_integer(*_EXPERTS_PER_TOKEN, default=0, high=2**16),
        moe_intermediate_size=_expert_size(tensors),
        has_sinks=has_sinks(layers),
        mm_prefix=mm_prefix(fields.values),
        multimodal=any(group.part in {"vision", "audio"} for group in tensors),
        mtp_layers=mtp_layers(fields.values),
        hidden_act=text.text("hidden_act", text.text("hidden_activation", "silu")),
        qk_nope_head_dim=text.integer("qk_nope_head_dim", 0, high=LARGEST_COUNT),
        v_head_dim=text.integer("v_head_dim", 0, high=LARGEST_COUNT),
    )


def _expert_size(tensors: tuple[TensorGroup, ...]) -> int:
    """Width of one expert: rows of its first matrix; 0 for dense models."""
    return next((group.out_features for group in tensors if group.sharding == "expert_column"), 0)


def _dtype(fields: Fields, text: Fields) -> str:
    for block in (text, fields):
        for key in ("dtype", "torch_dtype"):
            name = block.text(key)
            if name in DTYPE_BYTES:
                return name
    return "bfloat16"
