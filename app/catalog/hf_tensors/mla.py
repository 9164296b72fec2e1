"""Multi-head latent attention: DeepSeek, Kimi, GLM-4.7-Flash, GLM-5, Mistral 4; its indexer."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.blocks import experts, mlp
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder_ends,
    decoder_shape,
    expert_layers,
    read_experts,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE, Shape
from app.core.model_spec import TensorGroup


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Sizes of MLA. `q_lora_rank` 0: q is projected in one step. `indexer`: see Indexer."""

    hidden_size: int
    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    output_gate: bool = False
    name: str = "self_attn"


@dataclass(frozen=True, slots=True)
class Indexer:
    """Sparse attention's indexer (DeepSeek-V3.2, GLM-5): picks the tokens to attend to."""

    heads: int
    head_dim: int


def read_latent_attention(text: Fields, shape: Shape) -> LatentAttention:
    """Read MLA's sizes; raises ConfigError where one is missing."""

    def size(key: str, low: int = 1) -> int:
        return text.integer(key, low=low, high=LARGEST_SIZE)

    return LatentAttention(
        shape.hidden_size,
        shape.num_attention_heads,
        text.integer("q_lora_rank", 0, high=LARGEST_SIZE),
        size("kv_lora_rank"),
        size("qk_nope_head_dim"),
        size("qk_rope_head_dim", 0),
        size("v_head_dim"),
        text.flag("mla_use_output_gate"),
    )


def latent_attention(layer: LayerTensors, shape: LatentAttention) -> None:
    """Add the down- and up-projections of MLA."""
    hidden, heads, name = shape.hidden_size, shape.heads, shape.name
    q_size = heads * (shape.qk_nope_head_dim + shape.qk_rope_head_dim)
    if shape.q_lora_rank:
        layer.linear(f"{name}.q_a_proj", "attn", (shape.q_lora_rank, hidden))
        layer.norms(shape.q_lora_rank, f"{name}.q_a_layernorm")
        up = (q_size, shape.q_lora_rank)
        layer.linear(f"{name}.q_b_proj", "attn", up, "column", units=heads)
    else:
        layer.linear(f"{name}.q_proj", "attn", (q_size, hidden), "column", units=heads)
    latent = shape.kv_lora_rank
    layer.linear(f"{name}.kv_a_proj_with_mqa", "attn", (latent + shape.qk_rope_head_dim, hidden))
    layer.norms(latent, f"{name}.kv_a_layernorm")
    up = (heads * (shape.qk_nope_head_dim + shape.v_head_dim), latent)
    layer.linear(f"{name}.kv_b_proj", "attn", up, "column", units=heads)
    out = heads * shape.v_head_dim
    layer.linear(f"{name}.o_proj", "attn", (hidden, out), "row", units=heads)
    if shape.output_gate:
        layer.linear(f"{name}.g_proj", "attn", (out, hidden), "column", units=heads)


def indexer(layer: LayerTensors, shape: Indexer, attention: LatentAttention) -> None:
    """Add the indexer of one layer; vLLM keeps wk and weights_proj merged in 16 bit."""
    name = f"{attention.name}.indexer"
    layer.linear(f"{name}.wq_b", "attn", (shape.heads * shape.head_dim, attention.q_lora_rank))
    key, weights = (shape.head_dim, attention.hidden_size), (shape.heads, attention.hidden_size)
    layer.unpacked(f"{name}.wk", "attn", key, "bfloat16")
    layer.plain(f"{name}.weights_proj", "attn", weights)
    layer.vector(f"{name}.k_norm", "norm", shape.head_dim)
    layer.vector(f"{name}.k_norm.bias", "norm", shape.head_dim)


def indexer_layers(text: Fields, num_hidden_layers: int) -> frozenset[int]:
    """Layers with an indexer of their own; the others use an earlier layer's choice."""
    if not text.has("index_n_heads"):
        return frozenset()
    kinds = text.texts("indexer_types")
    return frozenset(
        layer for layer in range(num_hidden_layers) if layer >= len(kinds) or kinds[layer] == "full"
    )


def mla_decoder(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of a decoder with MLA in every layer."""
    shape = decoder_shape(config, text, traits)
    heads = read_latent_attention(text, shape)
    dense, moe = read_mlp(text, shape, traits), read_experts(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers) if moe else frozenset()
    indexed = indexer_layers(text, shape.num_hidden_layers)
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        latent_attention(layer, heads)
        if index in indexed:
            indexer(layer, read_indexer(text), heads)
        if moe and index in sparse:
            experts(layer, traits.moe, moe)
        else:
            mlp(layer, "mlp", "mlp", dense)
        groups += layer.groups
    return groups + rotary_tables(text, traits, sparse=bool(indexed))


def rotary_tables(text: Fields, traits: Traits, *, sparse: bool) -> list[TensorGroup]:
    """Table of the rotary dimensions, and a second one where the indexer turns them otherwise."""
    size = text.integer("qk_rope_head_dim", 0, high=LARGEST_COUNT)
    tables = rotary_cache(text, size, whole=True, dtype=traits.rotary_dtype)
    if sparse and not text.flag("indexer_rope_interleave"):
        tables += rotary_cache(text, size, whole=True, dtype=traits.indexer_rotary_dtype)
    return tables


def read_indexer(text: Fields) -> Indexer:
    """Read the indexer's sizes."""
    return Indexer(
        text.integer("index_n_heads", low=1, high=LARGEST_COUNT),
        text.integer("index_head_dim", low=1, high=LARGEST_COUNT),
    )
