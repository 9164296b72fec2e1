"""Gated delta net beside full attention: Qwen3-Next, Qwen3.5 and their drafts."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.blocks import Attention, Experts, Mlp, attention, experts, mlp
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder_ends,
    decoder_shape,
    expert_layers,
    read_attention,
    read_experts,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_COUNT, Shape
from app.core.model_spec import LAST_STAGE, TensorGroup

FULL_ATTENTION = "full_attention"


def full_attention_layers(text: Fields, num_hidden_layers: int) -> frozenset[int]:
    """Layers with full attention: from `layer_types`, else every `full_attention_interval`."""
    kinds = text.texts("layer_types")
    interval = text.integer("full_attention_interval", 4, low=1, high=MAX_LAYERS)
    return frozenset(
        layer
        for layer in range(num_hidden_layers)
        if (kinds[layer] == FULL_ATTENTION if layer < len(kinds) else (layer + 1) % interval == 0)
    )


def gated_delta_net(layer: LayerTensors, text: Fields, hidden_size: int, *, merged: bool) -> None:
    """Add one gated delta net; `merged`: q, k, v and z in one matrix, b and a in another."""

    def size(key: str, default: int) -> int:
        return text.integer(key, default, low=1, high=LARGEST_COUNT)

    key_heads = size("linear_num_key_heads", 16)
    value_heads = size("linear_num_value_heads", 32)
    key = key_heads * size("linear_key_head_dim", 128)
    value = value_heads * size("linear_value_head_dim", 128)
    name, units = "linear_attn", key_heads
    inputs = {"in_proj_qkvz": 2 * key + 2 * value, "in_proj_ba": 2 * value_heads}
    if not merged:
        inputs = {"in_proj_qkv": 2 * key + value, "in_proj_z": value}
        inputs |= {"in_proj_b": value_heads, "in_proj_a": value_heads}
    for part, rows in inputs.items():
        module = "ssm" if rows > 2 * value_heads else "ssm_ba"
        layer.linear(f"{name}.{part}", module, (rows, hidden_size), "column", units=units)
    kernel = size("linear_conv_kernel_dim", 4)
    layer.plain(f"{name}.conv1d", "conv", (2 * key + value, kernel), "column", units=units)
    layer.vector(f"{name}.dt_bias", "ssm", value_heads, "column", units=value_heads)
    layer.vector(f"{name}.A_log", "ssm", value_heads, "column", units=value_heads, dtype="float32")
    layer.norms(size("linear_value_head_dim", 128), f"{name}.norm")
    layer.linear(f"{name}.out_proj", "ssm", (hidden_size, value), "row", units=value_heads)


def gated_delta_decoder(
    config: Fields, text: Fields, traits: Traits, *, merged: bool
) -> list[TensorGroup]:
    """Tensor groups of a decoder that mixes gated delta net and gated full attention."""
    shape = decoder_shape(config, text, traits)
    heads = replace(read_attention(text, shape, traits), output_gate=True)
    dense, moe = read_mlp(text, shape, traits), read_experts(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers) if moe else frozenset()
    full = full_attention_layers(text, shape.num_hidden_layers)
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        if index in full:
            attention(layer, heads)
        else:
            gated_delta_net(layer, text, shape.hidden_size, merged=merged)
        _feed_forward(layer, moe if moe and index in sparse else dense)
        groups += layer.groups
    groups += _draft(text, shape, heads, moe or dense)
    return groups + rotary_cache(text, shape.head_dim)


def _feed_forward(layer: LayerTensors, block: Mlp | Experts) -> None:
    if isinstance(block, Experts):
        experts(layer, "mlp", block)
    else:
        mlp(layer, "mlp", "mlp", block)


def _draft(text: Fields, shape: Shape, heads: Attention, block: Mlp | Experts) -> list[TensorGroup]:
    """Multi-token-prediction layers; Qwen3-Next's config does not count its one layer."""
    count = text.integer("mtp_num_hidden_layers", 1, high=MAX_LAYERS)
    hidden = shape.hidden_size
    draft = LayerTensors(LAST_STAGE, "mtp", "mtp.")
    if count:
        draft.plain("fc", "mtp", (hidden, 2 * hidden), "column")
        draft.norms(hidden, "pre_fc_norm_hidden", "pre_fc_norm_embedding", "norm")
    for _ in range(count):
        layer = LayerTensors(LAST_STAGE, "mtp", "mtp.layers.")
        layer.norms(hidden, "input_layernorm", "post_attention_layernorm")
        attention(layer, heads)
        _feed_forward(layer, block)
        draft.groups += layer.groups
    return draft.groups
