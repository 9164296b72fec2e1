"""Plain decoders: attention with grouped heads, dense or mixture-of-experts feed-forward."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.blocks import Attention, Experts, Mlp, QkNorm, attention, ends, experts
from app.catalog.hf_tensors.blocks import mlp as add_mlp
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.core.model_spec import TensorGroup


@dataclass(frozen=True, slots=True)
class Traits:
    """What a family does that its config does not say (Hugging Face's modelling code).

    `qkv_bias` and `o_bias` hold where `attention_bias` is absent. `norms` are a layer's norms of
    the hidden size. `moe_every` is the config key of the step between expert layers.
    """

    qkv_bias: bool = False
    o_bias: bool = False
    bias_follows_key: bool = True
    o_bias_follows_key: bool = True
    qk_norm: QkNorm = "none"
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    gated_mlp: bool = True
    fused: bool = False
    tied: bool = False
    sinks: bool = False
    moe_name: str = "mlp"
    expert_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    router: str = "gate"
    router_bias: str = ""
    router_has_bias: bool = False
    expert_bias: bool = False
    expert_size_key: str = "moe_intermediate_size"
    shared: str = "shared_experts"
    shared_gate: bool = False
    defaults: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes every decoder has; keys are Hugging Face's."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool


def read_shape(config: Fields, text: Fields, traits: Traits) -> Shape:
    """Read the sizes; raises ConfigError where one is missing or out of bounds."""
    known = traits.defaults
    hidden = text.integer("hidden_size", known.get("hidden_size"), low=1, high=2**20)
    heads = text.integer("num_attention_heads", known.get("num_attention_heads"), low=1, high=2**14)
    default_kv = known.get("num_key_value_heads", heads)
    default_head = known.get("head_dim", max(1, hidden // heads))
    tied = config if config.has("tie_word_embeddings") else text
    return Shape(
        hidden_size=hidden,
        intermediate_size=text.integer(
            "intermediate_size", known.get("intermediate_size", 0), high=2**22
        ),
        num_hidden_layers=text.integer(
            "num_hidden_layers", known.get("num_hidden_layers"), low=1, high=MAX_LAYERS
        ),
        num_attention_heads=heads,
        num_key_value_heads=text.integer("num_key_value_heads", default_kv, low=1, high=2**14),
        head_dim=text.integer("head_dim", default_head, low=1, high=2**14),
        vocab_size=text.integer("vocab_size", known.get("vocab_size"), low=1, high=2**24),
        tie_word_embeddings=tied.flag("tie_word_embeddings", default=traits.tied),
    )


def read_attention(text: Fields, shape: Shape, traits: Traits) -> Attention:
    """Attention block of a plain decoder."""
    qkv_bias, o_bias = traits.qkv_bias, traits.o_bias
    if traits.bias_follows_key:
        qkv_bias = text.flag("attention_bias", default=qkv_bias)
        if traits.o_bias_follows_key:
            o_bias = text.flag("attention_out_bias", default=qkv_bias)
    return Attention(
        hidden_size=shape.hidden_size,
        heads=shape.num_attention_heads,
        kv_heads=shape.num_key_value_heads,
        head_dim=shape.head_dim,
        head_dim_v=shape.head_dim,
        qkv_bias=qkv_bias,
        o_bias=o_bias,
        qk_norm=traits.qk_norm,
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
    size = text.integer(traits.expert_size_key, shape.intermediate_size, low=1, high=2**20)
    shared = text.integer("shared_expert_intermediate_size", 0, high=2**20)
    shared = shared or size * text.integer("n_shared_experts", 0, high=2**10)
    return Experts(
        shape.hidden_size,
        count,
        size,
        shared_size=shared,
        shared_gate=traits.shared_gate and bool(shared),
        router_bias=traits.router_bias,
        router_has_bias=traits.router_has_bias,
        expert_bias=traits.expert_bias,
        router=traits.router,
        shared=traits.shared,
        names=traits.expert_names,
    )


def expert_layers(text: Fields, num_hidden_layers: int) -> frozenset[int]:
    """Layers that hold experts, by the keys families use to say so."""
    dense = set(text.integers("mlp_only_layers", high=MAX_LAYERS))
    dense |= set(range(text.integer("first_k_dense_replace", 0, high=MAX_LAYERS)))
    step = text.integer("decoder_sparse_step", 1, low=1, high=MAX_LAYERS)
    frequency = text.values.get("moe_layer_freq")
    pattern = text.integers("moe_layer_freq") if isinstance(frequency, list | tuple) else ()
    return frozenset(
        layer
        for layer in range(num_hidden_layers)
        if layer not in dense
        and (layer + 1) % step == 0
        and (layer >= len(pattern) or pattern[layer])
    )


def decoder(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of a plain decoder, rotary cache included."""
    shape = read_shape(config, text, traits)
    heads = read_attention(text, shape, traits)
    moe = read_experts(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers) if moe else frozenset()
    names = ("gate_up_proj", "gate_up_proj", "down_proj") if traits.fused else None
    dense = Mlp(
        shape.hidden_size,
        shape.intermediate_size,
        traits.gated_mlp,
        text.flag("mlp_bias"),
        names or ("gate_proj", "up_proj", "down_proj"),
    )
    groups = ends(shape.vocab_size, shape.hidden_size, tied=shape.tie_word_embeddings)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        attention(layer, heads)
        if moe and index in sparse:
            experts(layer, traits.moe_name, moe)
        else:
            add_mlp(layer, "mlp", "mlp", dense)
        groups += layer.groups
    return groups + list(rotary_cache(text, shape.head_dim))


