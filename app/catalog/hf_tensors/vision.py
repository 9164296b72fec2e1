"""Vision towers: Qwen's, Pixtral, SigLIP, Gemma 4's, Llama 4's, MoonViT, MiniMax-M3's."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE
from app.core.model_spec import EVERY_STAGE, Sharding, TensorGroup


@dataclass(frozen=True, slots=True)
class Encoder:
    """One transformer block of a tower. `bias`: of every linear layer; `norm_bias`: of norms.

    `split`: vLLM splits the tower over tensor-parallel ranks (its default where it can).
    `qkv_size`: width of q, k and v, where it is not the hidden size.
    """

    hidden_size: int
    intermediate_size: int
    names: tuple[str, ...]
    gated: bool = False
    bias: bool = True
    norm_bias: bool = True
    split: bool = True
    qkv_size: int = 0


def tower(prefix: str) -> LayerTensors:
    """Start a tower: every pipeline stage holds it."""
    return LayerTensors(EVERY_STAGE, "vision", prefix)


def vision_size(vision: Fields, key: str, default: int | None = None) -> int:
    """One size of a vision config; raises ConfigError."""
    return vision.integer(key, default, low=1, high=LARGEST_SIZE)


def vision_layers(vision: Fields, key: str, default: int | None = None) -> int:
    """Number of blocks of a tower; raises ConfigError."""
    return vision.integer(key, default, high=MAX_LAYERS)


def projection(
    layer: LayerTensors,
    name: str,
    shape: tuple[int, int],
    sharding: Sharding = "replicated",
    *,
    bias: bool = True,
) -> None:
    """Add one linear layer of a tower."""
    layer.linear(name, "vision", shape, sharding, bias=bias)


def layer_norm(layer: LayerTensors, size: int, *names: str, bias: bool = True) -> None:
    """Add norms of a tower."""
    for name in names:
        layer.vector(name, "vision", size)
        if bias:
            layer.vector(f"{name}.bias", "vision", size)


def encoder_block(layer: LayerTensors, shape: Encoder) -> None:
    """Add one block: q, k, v, output, feed-forward matrices, two norms.

    `shape.names`: attention, output, first norm, second norm, then the feed-forward matrices.
    """
    column: Sharding = "column" if shape.split else "replicated"
    row: Sharding = "row" if shape.split else "replicated"
    attention, output, norm1, norm2, *matrices = shape.names
    hidden, inner = shape.hidden_size, shape.intermediate_size
    qkv = shape.qkv_size or hidden
    projection(layer, attention, (3 * qkv, hidden), column, bias=shape.bias)
    projection(layer, output, (hidden, qkv), row, bias=shape.bias)
    layer_norm(layer, hidden, norm1, norm2, bias=shape.norm_bias)
    *first, last = matrices
    for name in first:
        projection(layer, name, (inner, hidden), column, bias=shape.bias)
    projection(layer, last, (hidden, inner), row, bias=shape.bias)


def qwen_vision(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Tower of Qwen3-VL and Qwen3.5, mergers for deepstack layers included."""
    layer = tower("visual.")
    hidden = vision_size(vision, "hidden_size", 1152)
    patch = _patch(vision, 16, vision.integer("temporal_patch_size", 2, low=1, high=64))
    projection(layer, "patch_embed.proj", (hidden, patch))
    positions = vision_size(vision, "num_position_embeddings", 2304)
    projection(layer, "pos_embed", (positions, hidden), bias=False)
    names = ("attn.qkv", "attn.proj", "norm1", "norm2", "mlp.linear_fc1", "mlp.linear_fc2")
    inner = vision_size(vision, "intermediate_size", 4304)
    for _ in range(vision_layers(vision, "depth", 27)):
        block = LayerTensors(EVERY_STAGE, "vision", "visual.blocks.")
        encoder_block(block, Encoder(hidden, inner, names))
        layer.groups += block.groups
    out = vision_size(vision, "out_hidden_size", text_hidden_size)
    merged = hidden * vision.integer("spatial_merge_size", 2, low=1, high=64) ** 2
    _qwen_merger(layer, "merger", hidden, merged, out)
    for _ in vision.integers("deepstack_visual_indexes", high=MAX_LAYERS):
        _qwen_merger(layer, "deepstack_merger_list", merged, merged, out)
    return layer.groups


def _qwen_merger(layer: LayerTensors, name: str, normed: int, merged: int, out: int) -> None:
    layer_norm(layer, normed, f"{name}.norm")
    projection(layer, f"{name}.linear_fc1", (merged, merged), "column")
    projection(layer, f"{name}.linear_fc2", (out, merged), "row")


def pixtral(config: Fields, vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Pixtral's tower and Mistral 3's projector."""
    layer = tower("vision_tower.")
    hidden = vision_size(vision, "hidden_size", 1024)
    projection(layer, "patch_conv", (hidden, _patch(vision, 16)), bias=False)
    layer_norm(layer, hidden, "ln_pre", bias=False)
    names = (
        "attention.qkv_proj",
        "attention.o_proj",
        "attention_norm",
        "ffn_norm",
        "feed_forward.gate_proj",
        "feed_forward.up_proj",
        "feed_forward.down_proj",
    )
    inner = vision_size(vision, "intermediate_size", 4096)
    shape = Encoder(hidden, inner, names, bias=False, norm_bias=False)
    for _ in range(vision_layers(vision, "num_hidden_layers", 24)):
        block = LayerTensors(EVERY_STAGE, "vision", "vision_tower.transformer.layers.")
        encoder_block(block, shape)
        layer.groups += block.groups
    joint = tower("multi_modal_projector.")
    merge = config.integer("spatial_merge_size", 2, low=1, high=64) ** 2
    layer_norm(joint, hidden, "norm", bias=False)
    projection(joint, "patch_merger.merging_layer", (hidden, hidden * merge), bias=False)
    bias = config.flag("multimodal_projector_bias")
    projection(joint, "linear_1", (text_hidden_size, hidden), "column", bias=bias)
    projection(joint, "linear_2", (text_hidden_size, text_hidden_size), "row", bias=bias)
    return layer.groups + joint.groups


def siglip(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """SigLIP as Gemma 3 uses it, with the projection to the language model."""
    layer = tower("vision_tower.vision_model.")
    hidden = vision_size(vision, "hidden_size", 1152)
    image = vision_size(vision, "image_size", 896)
    positions = (image // vision_size(vision, "patch_size", 14)) ** 2
    projection(layer, "embeddings.patch_embedding", (hidden, _patch(vision, 14)))
    projection(layer, "embeddings.position_embedding", (positions, hidden), bias=False)
    names = ("self_attn.qkv_proj", "self_attn.out_proj", "layer_norm1", "layer_norm2")
    inner = vision_size(vision, "intermediate_size", 4304)
    shape = Encoder(hidden, inner, (*names, "mlp.fc1", "mlp.fc2"))
    for _ in range(vision_layers(vision, "num_hidden_layers", 27)):
        block = LayerTensors(EVERY_STAGE, "vision", "vision_tower.vision_model.encoder.layers.")
        encoder_block(block, shape)
        layer.groups += block.groups
    layer_norm(layer, hidden, "post_layernorm")
    joint = tower("multi_modal_projector.")
    projection(joint, "mm_input_projection", (hidden, text_hidden_size), bias=False)
    layer_norm(joint, hidden, "mm_soft_emb_norm", bias=False)
    return layer.groups + joint.groups


def moonvit(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """MoonViT of Kimi K2.5 and K3, with its projector."""
    layer = tower("vision_tower.")
    hidden = vision_size(vision, "vt_hidden_size", 1152)
    bias = vision.flag("linear_bias", default=True)
    normed = vision.text("norm_type", "layernorm") != "rmsnorm"
    rows = vision_size(vision, "init_pos_emb_height", 64)
    rows *= vision_size(vision, "init_pos_emb_width", 64)
    patch_bias = vision.flag("patch_embed_proj_bias", default=True)
    projection(layer, "patch_embed.proj", (hidden, _patch(vision, 14)), bias=patch_bias)
    projection(layer, "patch_embed.pos_emb", (rows, hidden), bias=False)
    shape = Encoder(
        hidden,
        vision_size(vision, "vt_intermediate_size", 4304),
        ("wqkv", "wo", "norm0", "norm1", "mlp.fc0", "mlp.fc1"),
        bias=bias,
        norm_bias=normed,
        qkv_size=vision_size(vision, "qkv_hidden_size", hidden),
    )
    for _ in range(vision_layers(vision, "vt_num_hidden_layers", 27)):
        block = LayerTensors(EVERY_STAGE, "vision", "vision_tower.encoder.blocks.")
        encoder_block(block, shape)
        layer.groups += block.groups
    layer_norm(layer, hidden, "encoder.final_layernorm", bias=normed)
    joint = tower("mm_projector.")
    kernel = vision.integers("merge_kernel_size", high=64) or (2, 2)
    merged = hidden * kernel[0] * kernel[-1]
    out = vision_size(vision, "text_hidden_size", text_hidden_size)
    second = vision.text("mm_projector_type") == "patchmergerv2"
    if second:
        layer_norm(joint, out, "post_norm", bias=False)
    else:
        layer_norm(joint, hidden, "pre_norm")
    projection(joint, "linear_1", (merged, merged), bias=not second)
    projection(joint, "linear_2", (out, merged), bias=not second)
    return layer.groups + joint.groups


def _patch(vision: Fields, default: int, frames: int = 1) -> int:
    side = vision.integer("patch_size", default, low=1, high=LARGEST_COUNT)
    key = "in_channels" if vision.has("in_channels") else "num_channels"
    return vision.integer(key, 3, low=1, high=64) * frames * side * side
