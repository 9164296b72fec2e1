"""Vision towers with parts of their own: Gemma 4, Llama 4, MiniMax-M3, Qwen2.5-VL."""

from __future__ import annotations

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.vision import (
    Encoder,
    encoder_block,
    layer_norm,
    projection,
    tower,
    vision_layers,
    vision_size,
)
from app.core.model_spec import EVERY_STAGE, TensorGroup


def gemma4_vision(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Gemma 4's tower, replicated on every rank, with the projection to the language model."""
    if vision.text("model_type") == "gemma4_unified_vision":
        return _gemma4_patches(vision, text_hidden_size)
    layer = tower("vision_tower.")
    hidden = vision_size(vision, "hidden_size", 768)
    positions = vision_size(vision, "position_embedding_size", 10240)
    patch = vision_size(vision, "patch_size", 16)
    projection(layer, "patch_embedder.position_embedding", (2 * positions, hidden), bias=False)
    projection(layer, "patch_embedder.input_proj", (hidden, 3 * patch * patch), bias=False)
    if vision.flag("standardize"):
        layer_norm(layer, hidden, "std_bias", "std_scale", bias=False)
    for _ in range(vision_layers(vision, "num_hidden_layers", 16)):
        layer.groups += _gemma4_block(vision, hidden)
    joint = tower("embed_vision.")
    projection(joint, "embedding_projection", (text_hidden_size, hidden), bias=False)
    return layer.groups + joint.groups


def _gemma4_block(vision: Fields, hidden: int) -> list[TensorGroup]:
    block = LayerTensors(EVERY_STAGE, "vision", "vision_tower.encoder.layers.")
    attention = ("q_proj", "k_proj", "v_proj", "o_proj")
    inner = vision_size(vision, "intermediate_size", 3072)
    shapes = {f"self_attn.{name}": (hidden, hidden) for name in attention}
    shapes |= {"mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden)}
    shapes["mlp.down_proj"] = (hidden, inner)
    for name, shape in shapes.items():
        projection(block, name, shape, bias=False)
    head_dim = vision_size(vision, "head_dim", 64)
    layer_norm(block, head_dim, "self_attn.q_norm", "self_attn.k_norm", bias=False)
    layer_norm(
        block,
        hidden,
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        bias=False,
    )
    return block.groups


def _gemma4_patches(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Gemma 4 12B has no tower: patches go through one projection."""
    layer = tower("vision_embedder.")
    hidden = vision_size(vision, "mm_embed_dim", 3840)
    side = vision_size(vision, "patch_size", 16) * vision_size(vision, "pooling_kernel_size", 3)
    patch = 3 * side * side
    layer_norm(layer, patch, "patch_ln1")
    projection(layer, "patch_dense", (hidden, patch), "column")
    positions = 2 * vision_size(vision, "mm_posemb_size", 1120)
    projection(layer, "pos_embedding", (positions, hidden), bias=False)
    layer_norm(layer, hidden, "patch_ln2", "pos_norm")
    joint = tower("embed_vision.")
    projection(joint, "embedding_projection", (text_hidden_size, hidden), bias=False)
    return layer.groups + joint.groups


def llama4_vision(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Llama 4's tower, its adapter and projector."""
    layer = tower("vision_model.")
    hidden = vision_size(vision, "hidden_size", 768)
    inner = vision_size(vision, "intermediate_size", 5632)
    patch = vision_size(vision, "patch_size", 14)
    positions = (vision_size(vision, "image_size", 448) // patch) ** 2 + 1
    layer.vector("class_embedding", "vision", hidden)
    projection(layer, "positional_embedding_vlm", (positions, hidden), bias=False)
    projection(layer, "patch_embedding.linear", (hidden, 3 * patch * patch), "column", bias=False)
    layer_norm(layer, hidden, "layernorm_pre", "layernorm_post")
    names = ("self_attn.qkv_proj", "self_attn.o_proj", "input_layernorm")
    shape = Encoder(hidden, inner, (*names, "post_attention_layernorm", "mlp.fc1", "mlp.fc2"))
    for _ in range(vision_layers(vision, "num_hidden_layers", 34)):
        block = LayerTensors(EVERY_STAGE, "vision", "vision_model.model.layers.")
        encoder_block(block, shape)
        layer.groups += block.groups
    shuffle = vision.number("pixel_shuffle_ratio", 0.5, low=0.01, high=1.0)
    into = vision_size(vision, "projector_input_dim", 4096)
    out = vision_size(vision, "projector_output_dim", 4096)
    shuffled = int(hidden // shuffle**2)
    adapter = "vision_adapter.mlp"
    projection(layer, f"{adapter}.fc1", (into, shuffled), "column", bias=False)
    projection(layer, f"{adapter}.fc2", (out, into), "row", bias=False)
    joint = tower("multi_modal_projector.")
    final = vision_size(vision, "vision_output_dim", 7680)
    projection(joint, "linear_1", (text_hidden_size, final), "column", bias=False)
    return layer.groups + joint.groups


def minimax_m3_vision(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """MiniMax-M3's tower with projector and patch merger."""
    layer = tower("vision_tower.vision_model.")
    hidden = vision_size(vision, "hidden_size", 1280)
    patch = vision_size(vision, "patch_size", 14)
    frames = vision_size(vision, "temporal_patch_size", 2)
    volume = 3 * frames * patch * patch
    projection(layer, "embeddings.patch_embedding", (hidden, volume), bias=False)
    layer_norm(layer, hidden, "pre_layrnorm")
    names = ("self_attn.qkv_proj", "self_attn.out_proj", "layer_norm1", "layer_norm2")
    inner = vision_size(vision, "intermediate_size", 5120)
    shape = Encoder(hidden, inner, (*names, "mlp.fc1", "mlp.fc2"))
    for _ in range(vision_layers(vision, "num_hidden_layers", 32)):
        block = LayerTensors(EVERY_STAGE, "vision", "vision_tower.vision_model.encoder.layers.")
        encoder_block(block, shape)
        layer.groups += block.groups
    text = text_hidden_size
    merged = text * vision.integer("spatial_merge_size", 2, low=1, high=64) ** 2
    joint = tower("")
    projection(joint, "multi_modal_projector.linear_1", (text, hidden), "column")
    projection(joint, "multi_modal_projector.linear_2", (text, text), "row")
    projection(joint, "patch_merge_mlp.linear_1", (text, merged), "column")
    projection(joint, "patch_merge_mlp.linear_2", (text, text), "row")
    return layer.groups + joint.groups


def qwen2_5_vision(vision: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Qwen2.5-VL's tower: RMS norms, gated feed-forward, a merger of 2 x 2 patches."""
    layer = tower("visual.")
    hidden = vision_size(vision, "hidden_size", 1280)
    patch = vision_size(vision, "patch_size", 14)
    frames = vision_size(vision, "temporal_patch_size", 2)
    projection(layer, "patch_embed.proj", (hidden, 3 * frames * patch * patch), bias=False)
    names = ("attn.qkv", "attn.proj", "norm1", "norm2")
    matrices = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    inner = vision_size(vision, "intermediate_size", 3420)
    shape = Encoder(hidden, inner, names + matrices, norm_bias=False)
    for _ in range(vision_layers(vision, "depth", 32)):
        block = LayerTensors(EVERY_STAGE, "vision", "visual.blocks.")
        encoder_block(block, shape)
        layer.groups += block.groups
    out = vision_size(vision, "out_hidden_size", text_hidden_size)
    merged = hidden * vision.integer("spatial_merge_size", 2, low=1, high=64) ** 2
    layer_norm(layer, hidden, "merger.ln_q", bias=False)
    projection(layer, "merger.mlp.0", (merged, merged), "column")
    projection(layer, "merger.mlp.2", (out, merged), "row")
    return layer.groups
