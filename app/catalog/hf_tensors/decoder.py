"""Plain decoders: attention with grouped heads, dense or mixture-of-experts feed-forward."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.blocks import (
    MLP_NAMES,
    Attention,
    Ends,
    EndsOn,
    Experts,
    Mlp,
    QkNorm,
    attention,
    ends,
    experts,
    mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_SIZE, Shape, read_shape
from app.core.model_spec import TensorGroup


@dataclass(frozen=True, slots=True)
class Traits:
    """What a family does that its config does not say (Hugging Face's and vLLM's code).

    `qkv_bias`, `o_bias`: where `attention_bias` is absent, or always with `bias_is_fixed`.
    `norms`: a layer's norms of the hidden size. `scalars`: a layer's single parameters.
    `ends_on`: see EndsOn. `rotary`: False where vLLM keeps no table.
    """

    qkv_bias: bool = False
    o_bias: bool = False
    bias_is_fixed: bool = False
    o_bias_follows: bool = True
    qk_norm: QkNorm = "none"
    qk_norm_key: str = ""
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    scalars: tuple[str, ...] = ()
    gated_mlp: bool = True
    mlp_bias: bool = False
    fused: bool = False
    tied: bool = False
    sinks: str = ""
    moe: str = "mlp"
    expert_names: tuple[str, str, str] = MLP_NAMES
    router: str = "gate"
    router_bias: bool = False
    router_loaded_dtype: str | None = None
    router_fallback_dtype: str | None = None
    correction: str = ""
    expert_bias: bool = False
    expert_size_keys: tuple[str, ...] = ("moe_intermediate_size", "intermediate_size")
    shared: str = "shared_experts"
    shared_gate: bool = False
    sequence_parallel: bool = False
    ends_on: EndsOn = "ends"
    head_bias: bool = False
    rotary: bool = True
    rotary_dtype: str | None = None
    indexer_rotary_dtype: str | None = None
    mrope_positions_factor: int = 1


def decoder_shape(config: Fields, text: Fields, traits: Traits) -> Shape:
    """Sizes of a plain decoder."""
    return read_shape(config, text, tied=traits.tied)


def read_attention(text: Fields, shape: Shape, traits: Traits) -> Attention:
    """Attention block of a plain decoder."""
    qkv_bias, o_bias = traits.qkv_bias, traits.o_bias
    if not traits.bias_is_fixed:
        qkv_bias = text.flag("attention_bias", default=qkv_bias)
        follows = qkv_bias if traits.o_bias_follows else o_bias
        o_bias = text.flag("attention_out_bias", default=follows)
    normed = not traits.qk_norm_key or text.flag(traits.qk_norm_key)
    return Attention(
        hidden_size=shape.hidden_size,
        heads=shape.num_attention_heads,
        kv_heads=shape.num_key_value_heads,
        head_dim=shape.head_dim,
        head_dim_v=shape.head_dim,
        qkv_bias=qkv_bias,
        o_bias=o_bias,
        qk_norm=traits.qk_norm if normed else "none",
        sinks=traits.sinks,
        fused_qkv=traits.fused,
    )


def read_experts(text: Fields, shape: Shape, traits: Traits) -> Experts | None:
    """Experts of a mixture-of-experts decoder, None for a dense one."""
    count = text.first_integer(
        "num_experts", "num_local_experts", "n_routed_experts", default=0, high=2**16
    )
    if not count:
        return None
    size = text.first_integer(
        *traits.expert_size_keys, default=shape.intermediate_size, high=LARGEST_SIZE
    )
    shared = text.first_integer(
        "shared_expert_intermediate_size", "shared_intermediate_size", default=0, high=LARGEST_SIZE
    )
    several = text.first_integer("n_shared_experts", "num_shared_experts", default=0, high=2**10)
    shared = shared or size * several
    return Experts(
        shape.hidden_size,
        count,
        size,
        shared_size=shared,
        shared_gate=traits.shared_gate and bool(shared),
        correction=traits.correction,
        expert_bias=traits.expert_bias,
        gated=traits.gated_mlp,
        router=traits.router,
        router_bias=traits.router_bias,
        router_loaded_dtype=traits.router_loaded_dtype,
        router_fallback_dtype=traits.router_fallback_dtype,
        shared=traits.shared,
        names=traits.expert_names,
        sequence_parallel=traits.sequence_parallel,
    )


def expert_layers(text: Fields, num_hidden_layers: int) -> frozenset[int]:
    """Layers that hold experts, by the keys families use to say so."""
    dense = set(text.integers("mlp_only_layers", high=MAX_LAYERS))
    dense |= set(range(text.integer("first_k_dense_replace", 0, high=MAX_LAYERS)))
    step = text.integer("decoder_sparse_step", 1, low=1, high=MAX_LAYERS)
    frequency = text.values.get("moe_layer_freq")
    pattern = text.integers("moe_layer_freq") if isinstance(frequency, list | tuple) else ()
    kinds = text.texts("mlp_layer_types")
    dense |= {layer for layer, kind in enumerate(kinds) if kind == "dense"}
    return frozenset(
        layer
        for layer in range(num_hidden_layers)
        if layer not in dense
        and (layer + 1) % step == 0
        and (layer >= len(pattern) or pattern[layer])
    )


def read_mlp(text: Fields, shape: Shape, traits: Traits) -> Mlp:
    """Dense feed-forward block of a plain decoder."""
    return Mlp(
        shape.hidden_size,
        shape.intermediate_size,
        traits.gated_mlp,
        text.flag("mlp_bias", default=traits.mlp_bias),
        ("gate_up_proj", "gate_up_proj", "down_proj") if traits.fused else MLP_NAMES,
    )


def decoder_ends(shape: Shape, traits: Traits) -> list[TensorGroup]:
    """Embedding, final norm and head of a plain decoder."""
    return ends(
        Ends(
            shape.vocab_size,
            shape.hidden_size,
            shape.tie_word_embeddings,
            traits.ends_on,
            head_bias=traits.head_bias,
        )
    )


def decoder(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of a plain decoder, rotary table included."""
    shape = decoder_shape(config, text, traits)
    heads, dense = read_attention(text, shape, traits), read_mlp(text, shape, traits)
    moe = read_experts(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers) if moe else frozenset()
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        plain_layer(layer, traits, heads, moe if moe and index in sparse else dense)
        groups += layer.groups
    if traits.rotary:
        groups += rotary_cache(
            text,
            shape.head_dim,
            mrope_positions_factor=traits.mrope_positions_factor,
            dtype=traits.rotary_dtype,
        )
    return groups


def plain_layer(
    layer: LayerTensors, traits: Traits, heads: Attention, feed_forward: Mlp | Experts
) -> None:
    """One decoder layer: norms, attention and its feed-forward block."""
    layer.norms(heads.hidden_size, *traits.norms)
    for name in traits.scalars:
        layer.vector(name, "mlp", 1)
    attention(layer, heads)
    if isinstance(feed_forward, Experts):
        experts(layer, traits.moe, feed_forward)
    else:
        mlp(layer, "mlp", "mlp", feed_forward)
