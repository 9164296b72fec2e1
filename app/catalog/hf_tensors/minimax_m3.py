"""MiniMax-M3: grouped heads with a block-sparse indexer, dense layers of another width."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder_ends,
    decoder_shape,
    expert_layers,
    plain_layer,
    read_attention,
    read_experts,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE
from app.core.model_spec import TensorGroup


def minimax_m3(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of MiniMax-M3's language model."""
    shape = decoder_shape(config, text, traits)
    heads, moe = read_attention(text, shape, traits), read_experts(text, shape, traits)
    width = text.integer("dense_intermediate_size", shape.intermediate_size, high=LARGEST_SIZE)
    dense = replace(read_mlp(text, shape, traits), intermediate_size=width)
    sparse = expert_layers(text, shape.num_hidden_layers)
    block = text.block("sparse_attention_config")
    pattern = block.integers("sparse_attention_freq", high=1)
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        plain_layer(layer, traits, heads, moe if moe and index in sparse else dense)
        if index < len(pattern) and pattern[index]:
            _indexer(layer, block, shape.hidden_size)
        groups += layer.groups
    return groups + rotary_cache(text, shape.head_dim)


def _indexer(layer: LayerTensors, block: Fields, hidden_size: int) -> None:
    heads = block.integer("sparse_num_index_heads", low=1, high=LARGEST_COUNT)
    size = block.integer("sparse_index_dim", low=1, high=LARGEST_COUNT)
    query = (heads * size, hidden_size)
    layer.linear("self_attn.index_q_proj", "attn", query, "kv_heads", units=heads)
    layer.linear("self_attn.index_k_proj", "attn", (size, hidden_size))
    layer.norms(size, "self_attn.index_q_norm", "self_attn.index_k_norm")
