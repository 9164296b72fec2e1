"""Kimi delta attention beside MLA: Kimi Linear and Kimi K3."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.blocks import Experts, experts, mlp
from app.catalog.hf_tensors.decoder import (
    Traits,
    decoder_ends,
    decoder_shape,
    expert_layers,
    read_experts,
    read_mlp,
)
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.mla import latent_attention, read_latent_attention
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE, Shape
from app.core.model_spec import LAST_STAGE, TensorGroup

MOE = "block_sparse_moe"
# vllm/models/kimi_k3/nvidia/model.py: a rank's share of an expert where the config names none.
LEAST_SHARE = 256


def kimi_linear(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of a decoder that mixes KDA and MLA (layers counted from 1 in its config)."""
    shape = decoder_shape(config, text, traits)
    heads = read_latent_attention(text, shape)
    dense, moe = read_mlp(text, shape, traits), _experts(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers) if moe else frozenset()
    linear = text.block("linear_attn_config")
    full = linear.integers("full_attn_layers", high=MAX_LAYERS)
    residual = text.has("attn_res_block_size")
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        if index + 1 in full:
            latent_attention(layer, heads)
        else:
            kimi_delta_attention(layer, linear, shape.hidden_size)
        if moe and index in sparse:
            experts(layer, MOE, moe)
            _latent_projections(layer, moe)
        else:
            mlp(layer, "mlp", "mlp", dense)
        if residual:
            _residual(layer, shape.hidden_size, "self_attention_res", "mlp_res")
        groups += layer.groups
    last = LayerTensors(LAST_STAGE)
    if residual:
        _residual(last, shape.hidden_size, "model.output_attn_res")
    return groups + last.groups


def kimi_delta_attention(layer: LayerTensors, linear: Fields, hidden_size: int) -> None:
    """Add one KDA mixer: q, k, v with their convolutions, the decay and the output gate."""
    heads = linear.integer("num_heads", low=1, high=LARGEST_COUNT)
    head_dim = linear.integer("head_dim", low=1, high=LARGEST_COUNT)
    kernel = linear.integer("short_conv_kernel_size", 4, low=1, high=64)
    size = heads * head_dim
    name = "self_attn"
    for part in ("q", "k", "v"):
        layer.linear(f"{name}.{part}_proj", "ssm", (size, hidden_size), "column", units=heads)
        layer.plain(
            f"{name}.{part}_conv1d",
            "conv",
            (size, kernel),
            "column",
            units=heads,
            loaded_dtype="float32",
        )
    low_rank = ("f",) if linear.flag("use_full_rank_gate") else ("f", "g")
    for gate in low_rank:
        layer.linear(f"{name}.{gate}_a_proj", "ssm_ba", (head_dim, hidden_size))
        layer.linear(f"{name}.{gate}_b_proj", "ssm_ba", (size, head_dim), "column", units=heads)
    if "g" not in low_rank:
        layer.linear(f"{name}.g_proj", "ssm", (size, hidden_size), "column", units=heads)
    layer.linear(f"{name}.b_proj", "ssm_ba", (heads, hidden_size), "column", units=heads)
    layer.vector(f"{name}.A_log", "ssm", heads, "column", dtype="float32")
    layer.vector(f"{name}.dt_bias", "ssm", size, "column", dtype="float32")
    layer.norms(head_dim, f"{name}.o_norm")
    layer.linear(f"{name}.o_proj", "ssm", (hidden_size, size), "row", units=heads)


def _experts(text: Fields, shape: Shape, traits: Traits) -> Experts | None:
    moe = read_experts(text, shape, traits)
    if moe is None:
        return None
    latent = text.integer("routed_expert_hidden_size", 0, high=LARGEST_SIZE)
    least = text.integer("min_moe_intermediate_per_partition", LEAST_SHARE, high=LARGEST_SIZE)
    return replace(moe, latent_size=latent, least_share=least)


def _latent_projections(layer: LayerTensors, shape: Experts) -> None:
    """Kimi K3's experts work in a smaller space: down before them, a norm, up after."""
    latent, hidden = shape.latent_size, shape.hidden_size
    if latent:
        layer.linear(f"{MOE}.routed_expert_down_proj", "latent", (latent, hidden))
        layer.norms(latent, f"{MOE}.routed_expert_norm")
        layer.linear(f"{MOE}.routed_expert_up_proj", "latent", (hidden, latent))


def _residual(layer: LayerTensors, hidden_size: int, *names: str) -> None:
    for name in names:
        layer.norms(hidden_size, f"{name}_norm")
        layer.plain(f"{name}_proj", "norm", (1, hidden_size))
