"""Audio towers: Gemma 4's."""

from __future__ import annotations

from app.catalog.hf_fields import MAX_LAYERS, Fields
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.shape import LARGEST_SIZE
from app.core.model_spec import EVERY_STAGE, TensorGroup

_SUBSAMPLING_KERNEL = 3 * 3
_SUBSAMPLING_STRIDE = 4


def gemma4_audio(audio: Fields, text_hidden_size: int) -> list[TensorGroup]:
    """Gemma 4's conformer with its projection; the 12B has the projection alone.

    Source: transformers, models/gemma4/modeling_gemma4.py `Gemma4AudioModel`.
    """
    joint = _audio("embed_audio.")
    if audio.text("model_type") == "gemma4_unified_audio":
        width = _size(audio, "audio_embed_dim", 640)
        _linear(joint, "embedding_projection", text_hidden_size, width)
        return joint.groups
    out, hidden = _size(audio, "output_proj_dims", 1536), _size(audio, "hidden_size", 1024)
    _linear(joint, "embedding_projection", text_hidden_size, out)
    tower = _audio("audio_tower.")
    channels = audio.integers("subsampling_conv_channels", high=LARGEST_SIZE) or (128, 32)
    first, second = channels[0], channels[-1]
    _linear(tower, "subsample.layer0.conv", first, _SUBSAMPLING_KERNEL)
    _linear(tower, "subsample.layer1.conv", second, first * _SUBSAMPLING_KERNEL)
    tower.vector("subsample.norms", "audio", first + second)
    _linear(tower, "subsample.input_proj", hidden, first // _SUBSAMPLING_STRIDE * second)
    _linear(tower, "output_proj", out, hidden)
    tower.vector("output_proj.bias", "audio", out)
    for _ in range(audio.integer("num_hidden_layers", 12, high=MAX_LAYERS)):
        tower.groups += _block(audio, hidden)
    return tower.groups + joint.groups


def _block(audio: Fields, hidden: int) -> list[TensorGroup]:
    layer = _audio("audio_tower.layers.")
    for half in ("feed_forward1", "feed_forward2"):
        _linear(layer, f"{half}.ffw_layer_1", 4 * hidden, hidden)
        _linear(layer, f"{half}.ffw_layer_2", hidden, 4 * hidden)
    for name in ("q_proj", "k_proj", "v_proj", "post", "relative_k_proj"):
        _linear(layer, f"self_attn.{name}", hidden, hidden)
    heads = _size(audio, "num_attention_heads", 8)
    layer.vector("self_attn.per_dim_scale", "audio", hidden // heads)
    _linear(layer, "lconv1d.linear_start", 2 * hidden, hidden)
    _linear(layer, "lconv1d.linear_end", hidden, hidden)
    _linear(layer, "lconv1d.depthwise_conv1d", hidden, _size(audio, "conv_kernel_size", 5))
    for name in ("ffw_norms", "lconv_norms", "attention_norms"):
        layer.vector(name, "audio", (4 if name == "ffw_norms" else 2) * hidden)
    layer.vector("norm_out", "audio", hidden)
    return layer.groups


def _audio(prefix: str) -> LayerTensors:
    return LayerTensors(EVERY_STAGE, "audio", prefix)


def _linear(layer: LayerTensors, name: str, out: int, into: int) -> None:
    layer.linear(name, "audio", (out, into))


def _size(audio: Fields, key: str, default: int) -> int:
    return audio.integer(key, default, low=1, high=LARGEST_SIZE)
