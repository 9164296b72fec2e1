"""Multi-token-prediction layers as DeepSeek-V3 and GLM-4.5 ship them."""

from __future__ import annotations

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.blocks import Experts, Mlp, attention, experts, mlp
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder_shape,
    read_attention,
    read_experts,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.mla import (
    indexer,
    latent_attention,
    read_indexer,
    read_latent_attention,
)
from app.catalog.hf_tensors.shape import Shape
from app.core.model_spec import LAST_STAGE, TensorGroup


def nextn_layers(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Draft layers after the last decoder layer: projection, norms, one whole layer each.

    Copies of embedding and head, where the files hold them, are shared with the target at run time.
    """
    shape = decoder_shape(config, text, traits)
    groups: list[TensorGroup] = []
    for _ in range(text.integer("num_nextn_predict_layers", 0, high=64)):
        layer = LayerTensors(LAST_STAGE, "mtp", "mtp.")
        hidden = shape.hidden_size
        layer.plain("eh_proj", "mtp", (hidden, 2 * hidden))
        layer.norms(hidden, "enorm", "hnorm", "shared_head.norm", *traits.norms)
        _attention(layer, text, shape, traits)
        _feed_forward(layer, read_experts(text, shape, traits), traits, text, shape)
        groups += layer.groups + _copies(shape)
    return groups


def _attention(layer: LayerTensors, text: Fields, shape: Shape, traits: Traits) -> None:
    if not text.has("kv_lora_rank"):
        attention(layer, read_attention(text, shape, traits))
        return
    heads = read_latent_attention(text, shape)
    latent_attention(layer, heads)
    if text.has("index_n_heads"):
        indexer(layer, read_indexer(text), heads)


def _feed_forward(
    layer: LayerTensors, moe: Experts | None, traits: Traits, text: Fields, shape: Shape
) -> None:
    if moe:
        experts(layer, traits.moe, moe)
    else:
        dense: Mlp = read_mlp(text, shape, traits)
        mlp(layer, "mlp", "mlp", dense)


def _copies(shape: Shape) -> list[TensorGroup]:
    copies = LayerTensors(LAST_STAGE, "mtp_shared", "mtp.")
    size = (shape.vocab_size, shape.hidden_size)
    for name in ("embed_tokens", "shared_head.head"):
        copies.plain(name, "embed", size, "vocab")
    return copies.groups
