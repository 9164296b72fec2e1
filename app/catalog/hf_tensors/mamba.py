"""Mamba-2 beside attention: Nemotron-H, Nemotron-3, Granite 4.0."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.hf_tensors.blocks import (
    Attention,
    Ends,
    Experts,
    Mlp,
    attention,
    ends,
    experts,
    mlp,
)
from app.catalog.hf_tensors.decoder import Traits, decoder_shape, read_attention, read_experts
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE, Shape
from app.core.model_spec import LAST_STAGE, TensorGroup

MOE_NAMES = ("up_proj", "up_proj", "down_proj")
_PATTERN = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Sizes of a Mamba-2 mixer; `groups` are replicated when tensor parallelism exceeds them."""

    hidden_size: int
    heads: int
    head_dim: int
    groups: int
    state_size: int
    conv_kernel: int
    conv_bias: bool
    proj_bias: bool


def mamba2(layer: LayerTensors, name: str, shape: Mamba2) -> None:
    """Add one Mamba-2 mixer under `name`."""
    hidden, inner = shape.hidden_size, shape.heads * shape.head_dim
    state = 2 * shape.groups * shape.state_size
    path, bias = f"{name}.in_proj", shape.proj_bias
    layer.linear(path, "ssm", (2 * inner, hidden), "column", units=shape.heads, bias=bias)
    layer.linear(path, "ssm", (state, hidden), "kv_heads", units=shape.groups, bias=bias)
    layer.linear(path, "ssm", (shape.heads, hidden), "column", units=shape.heads, bias=bias)
    path, kernel = f"{name}.conv1d", shape.conv_kernel
    bias = shape.conv_bias
    layer.plain(path, "conv", (inner, kernel), "column", bias=bias)
    layer.plain(path, "conv", (state, kernel), "kv_heads", units=shape.groups, bias=bias)
    layer.vector(f"{name}.A_log", "ssm", shape.heads, "column", dtype="float32")
    for vector in ("D", "dt_bias"):
        layer.vector(f"{name}.{vector}", "ssm", shape.heads, "column")
    layer.vector(f"{name}.norm", "norm", inner, "column")
    out = (hidden, inner)
    layer.linear(f"{name}.out_proj", "ssm", out, "row", units=shape.heads, bias=shape.proj_bias)


def nemotron_h(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of Nemotron-H: every layer is one mixer (Mamba-2, attention, MLP, experts)."""
    kinds = nemotron_layer_kinds(text)
    shape = decoder_shape(config, text, traits)
    if shape.num_hidden_layers != len(kinds):
        raise text.invalid("num_hidden_layers", shape.num_hidden_layers, len(kinds), len(kinds))
    blocks = _NemotronBlocks(text, shape, traits)
    groups = ends(
        Ends(
            shape.vocab_size,
            shape.hidden_size,
            shape.tie_word_embeddings,
            "everywhere",
            "backbone.norm_f",
            "backbone.embeddings",
        )
    )
    for index, kind in enumerate(kinds):
        layer = LayerTensors(index)
        blocks.add(layer, kind)
        groups += layer.groups
    return groups + _nemotron_draft(text, shape, blocks)


def nemotron_layer_kinds(text: Fields) -> tuple[str, ...]:
    """Kind of every layer: mamba, attention, moe or mlp."""
    return _layer_kinds(text, "hybrid_override_pattern", "layers_block_type")


class _NemotronBlocks:
    """The mixers of one Nemotron-H model."""

    def __init__(self, text: Fields, shape: Shape, traits: Traits) -> None:
        """Read the sizes of every mixer once."""
        self.hidden_size = shape.hidden_size
        self.attention: Attention = replace(read_attention(text, shape, traits), name="mixer")
        names = MOE_NAMES
        bias = text.flag("mlp_bias")
        self.mlp = Mlp(
            shape.hidden_size, shape.intermediate_size, gated=False, bias=bias, names=names
        )
        self.mamba = read_nemotron_mamba(text, shape)
        moe = read_experts(text, shape, traits)
        self.experts: Experts | None = None
        if moe:
            self.experts = replace(
                moe,
                names=names,
                gated=False,
                shared_size=text.integer(
                    "moe_shared_expert_intermediate_size", moe.shared_size, high=LARGEST_SIZE
                ),
                latent_size=text.integer("moe_latent_size", 0, high=LARGEST_SIZE),
            )

    def add(self, layer: LayerTensors, kind: str) -> None:
        """Add the norm and the mixer of one layer."""
        layer.norms(self.hidden_size, "norm")
        if kind == "mamba":
            mamba2(layer, "mixer", self.mamba)
        elif kind == "attention":
            attention(layer, self.attention)
        elif kind == "moe" and self.experts:
            experts(layer, "mixer", self.experts)
            if latent := self.experts.latent_size:
                size = (latent, self.hidden_size)
                layer.linear("mixer.fc1_latent_proj", "latent", size)
                layer.linear("mixer.fc2_latent_proj", "latent", size[::-1])
        elif kind == "mlp":
            mlp(layer, "mixer", "mlp", self.mlp)
        else:
            raise ConfigError("config_value_invalid", (("key", "layers"), ("value", kind)))


def read_nemotron_mamba(text: Fields, shape: Shape) -> Mamba2:
    """Mamba-2 sizes under Nemotron-H's names."""
    return Mamba2(
        shape.hidden_size,
        text.integer("mamba_num_heads", 128, low=1, high=LARGEST_COUNT),
        text.integer("mamba_head_dim", 64, low=1, high=LARGEST_COUNT),
        text.integer("n_groups", 8, low=1, high=LARGEST_COUNT),
        text.integer("ssm_state_size", 128, low=1, high=LARGEST_COUNT),
        text.integer("conv_kernel", 4, low=1, high=64),
        text.flag("use_conv_bias", default=True),
        text.flag("mamba_proj_bias"),
    )


def _nemotron_draft(text: Fields, shape: Shape, blocks: _NemotronBlocks) -> list[TensorGroup]:
    if not text.integer("num_nextn_predict_layers", 0, high=64):
        return []
    hidden = shape.hidden_size
    draft = LayerTensors(LAST_STAGE, "mtp", "mtp.")
    draft.plain("eh_proj", "mtp", (hidden, 2 * hidden))
    draft.norms(hidden, "enorm", "hnorm", "final_layernorm")
    for kind in _layer_kinds(text, "mtp_hybrid_override_pattern", "mtp_layers_block_type"):
        layer = LayerTensors(LAST_STAGE, "mtp", "mtp.layers.")
        blocks.add(layer, kind)
        draft.groups += layer.groups
    return draft.groups


def _layer_kinds(text: Fields, pattern_key: str, list_key: str) -> tuple[str, ...]:
    pattern = text.values.get(pattern_key)
    if pattern is None:
        return text.texts(list_key)
    letters = text.text(pattern_key) if isinstance(pattern, str) else ""
    return tuple(_PATTERN.get(letter, letter) for letter in letters)


def granite_hybrid(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of Granite 4.0: Mamba-2 or attention, then experts and a shared MLP."""
    shape = decoder_shape(config, text, traits)
    heads, moe = read_attention(text, shape, traits), read_experts(text, shape, traits)
    mixer = _granite_mamba(text, shape)
    shared = text.integer("shared_intermediate_size", 0, high=LARGEST_SIZE)
    kinds = text.texts("layer_types")
    names = ("input_linear", "input_linear", "output_linear")
    groups = ends(
        Ends(shape.vocab_size, shape.hidden_size, shape.tie_word_embeddings, "everywhere")
    )
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        layer.norms(shape.hidden_size, *traits.norms)
        if index < len(kinds) and kinds[index] == "attention":
            attention(layer, heads)
        else:
            mamba2(layer, "mamba", mixer)
        if moe:
            experts(layer, "block_sparse_moe", replace(moe, shared_size=0))
        mlp(layer, "shared_mlp", "shared", Mlp(shape.hidden_size, shared, names=names))
        groups += layer.groups
    return groups


def _granite_mamba(text: Fields, shape: Shape) -> Mamba2:
    heads = text.integer("mamba_n_heads", 128, low=1, high=LARGEST_COUNT)
    inner = text.integer("mamba_expand", 2, low=1, high=64) * shape.hidden_size
    dim = text.values.get("mamba_d_head")
    head_dim = max(1, inner // heads)
    if dim is not None and dim != "auto":
        head_dim = text.integer("mamba_d_head", low=1, high=LARGEST_COUNT)
    return Mamba2(
        shape.hidden_size,
        heads,
        head_dim,
        text.integer("mamba_n_groups", 1, low=1, high=LARGEST_COUNT),
        text.integer("mamba_d_state", 256, low=1, high=LARGEST_COUNT),
        text.integer("mamba_d_conv", 4, low=1, high=64),
        text.flag("mamba_conv_bias", default=True),
        text.flag("mamba_proj_bias"),
    )
