"""Gemma 3 and 4: sliding-window and full attention with sizes of their own."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.blocks import Attention, Experts, attention, experts, mlp
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder,
    decoder_ends,
    decoder_shape,
    read_attention,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rope_block, rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE, Shape
from app.core.model_spec import EVERY_STAGE, TensorGroup

FOUR_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
SLIDING, FULL = "sliding_attention", "full_attention"


def gemma3(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Gemma 2 and 3: a plain decoder with a second, local rope."""
    groups = decoder(config, text, replace(traits, rotary=False))
    head_dim = decoder_shape(config, text, traits).head_dim
    local, full = Fields({}), rope_block(text, FULL)
    return (
        groups + rotary_cache(text, head_dim, rope=local) + rotary_cache(text, head_dim, rope=full)
    )


def gemma4(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Gemma 4, dense, mixture of experts, or with embeddings of every layer (E2B, E4B)."""
    shape = decoder_shape(config, text, traits)
    kinds = _layer_kinds(text, shape)
    variants = _attention_variants(text, shape, traits)
    first_shared = shape.num_hidden_layers - text.integer("num_kv_shared_layers", 0, high=1024)
    dense, moe = read_mlp(text, shape, traits), _experts(text, shape)
    wide = replace(dense, intermediate_size=2 * dense.intermediate_size)
    double = text.flag("use_double_wide_mlp")
    groups = decoder_ends(shape, traits)
    for index, kind in enumerate(kinds):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *FOUR_NORMS)
        layer.vector("layer_scalar", "norm", 1)
        _gemma4_attention(layer, variants[kind], shared=index >= first_shared)
        mlp(layer, "mlp", "mlp", wide if double and index >= first_shared else dense)
        if moe:
            _gemma4_experts(layer, moe)
        groups += layer.groups
    groups += _per_layer_embeddings(text, shape)
    return groups + [
        table
        for kind in (SLIDING, FULL)
        for table in rotary_cache(
            text, variants[kind].head_dim, rope=rope_block(text, kind), whole=True
        )
    ]


def _layer_kinds(text: Fields, shape: Shape) -> tuple[str, ...]:
    kinds = text.texts("layer_types")
    pattern = text.integer("sliding_window_pattern", 6, low=1, high=1024)
    return tuple(
        (FULL if kinds[layer] == FULL else SLIDING)
        if layer < len(kinds)
        else (FULL if (layer + 1) % pattern == 0 else SLIDING)
        for layer in range(shape.num_hidden_layers)
    )


def _attention_variants(text: Fields, shape: Shape, traits: Traits) -> dict[str, Attention]:
    sliding = read_attention(text, shape, traits)
    head_dim = text.integer("global_head_dim", shape.head_dim, low=1, high=LARGEST_COUNT)
    same = text.flag("attention_k_eq_v")
    heads = shape.num_key_value_heads
    if same:
        heads = text.integer("num_global_key_value_heads", heads, low=1, high=LARGEST_COUNT)
    full = replace(
        sliding, head_dim=head_dim, head_dim_v=head_dim, kv_heads=heads, value_is_key=same
    )
    return {SLIDING: sliding, FULL: full}


def _gemma4_attention(layer: LayerTensors, shape: Attention, *, shared: bool) -> None:
    """Layers that share keys and values hold k and v in the files; vLLM leaves them out."""
    added = LayerTensors(layer.layer)
    attention(added, shape)
    unused = ("k_proj", "v_proj", "k_norm")
    for group in added.groups:
        left_out = shared and group.name.endswith(unused)
        layer.groups.append(replace(group, part="unused") if left_out else group)


def _experts(text: Fields, shape: Shape) -> Experts | None:
    if not text.flag("enable_moe_block"):
        return None
    size = text.first_integer(
        "moe_intermediate_size", "expert_intermediate_size", default=0, high=LARGEST_SIZE
    )
    count = text.integer("num_experts", 0, high=2**16)
    return Experts(shape.hidden_size, count, size, router="router.proj")


def _gemma4_experts(layer: LayerTensors, shape: Experts) -> None:
    moe = LayerTensors(layer.layer)
    experts(moe, "moe", shape)
    layer.groups += [replace(group, name=group.name.removeprefix("moe.")) for group in moe.groups]
    layer.vector("router.scale", "norm", shape.hidden_size)
    layer.vector("router.per_expert_scale", "norm", shape.count)
    layer.norms(
        shape.hidden_size,
        "post_feedforward_layernorm_1",
        "post_feedforward_layernorm_2",
        "pre_feedforward_layernorm_2",
    )


def _per_layer_embeddings(text: Fields, shape: Shape) -> list[TensorGroup]:
    size = text.integer("hidden_size_per_layer_input", 0, high=LARGEST_SIZE)
    if not size:
        return []
    rows = text.integer("vocab_size_per_layer_input", shape.vocab_size, high=2**24)
    hidden, total = shape.hidden_size, size * shape.num_hidden_layers
    first = LayerTensors(EVERY_STAGE)
    first.plain("model.embed_tokens_per_layer", "embed", (rows, total), "vocab")
    path = "model.per_layer_model_projection"
    first.linear(path, "ple", (total, hidden), "column")
    first.norms(size, "model.per_layer_projection_norm")
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.linear("per_layer_input_gate", "ple", (size, hidden))
        layer.linear("per_layer_projection", "ple", (hidden, size))
        layer.norms(hidden, "post_per_layer_input_norm")
        first.groups += layer.groups
    return first.groups
