"""Llama 4: experts every few layers, a shared expert, dense layers of another width."""

from __future__ import annotations

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.blocks import Experts, Mlp, attention, experts, mlp
from app.catalog.hf_tensors.decoder import Traits, decoder_ends, decoder_shape, read_attention
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_SIZE
from app.core.model_spec import TensorGroup


def llama4(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of Llama 4's language model."""
    shape = decoder_shape(config, text, traits)
    heads = read_attention(text, shape, traits)
    size = shape.intermediate_size
    wide = text.integer("intermediate_size_mlp", 16384, low=1, high=LARGEST_SIZE)
    dense = Mlp(shape.hidden_size, wide)
    moe = Experts(
        shape.hidden_size,
        text.integer("num_local_experts", 16, low=1, high=2**16),
        size,
        shared_size=size,
        router="router",
        shared="shared_expert",
        sequence_parallel=True,
    )
    step = text.integer("interleave_moe_layer_step", 1, low=1, high=MAX_LAYERS)
    listed = text.integers("moe_layers", high=MAX_LAYERS)
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        attention(layer, heads)
        if index in listed if listed else (index + 1) % step == 0:
            experts(layer, "feed_forward", moe)
        else:
            mlp(layer, "feed_forward", "mlp", dense)
        groups += layer.groups
    return groups + rotary_cache(text, shape.head_dim)
