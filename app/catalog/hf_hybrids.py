"""Ways of laying out recurrent layers, alone or among attention, read from a config.json.

Rules: `get_mamba_state_shape_from_config` in vllm/model_executor/models and vllm/models
(0.32.0, 0.33.0).
"""

from __future__ import annotations

from app.catalog.hf_attention import Layers, attention_spec, is_mla, layer_count, mla_spec
from app.catalog.hf_fields import MAX_LAYERS, ConfigError, Fields
from app.core.model_spec import CacheSpec, LayerSpec, StateSpec

_NEMOTRON = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def qwen3_next(text: Fields, model_type: str) -> Layers:
    """Gated delta net but for every fourth layer (Qwen3-Next, Qwen3.5, OLMo-Hybrid)."""
    state = StateSpec(
        kind="gated_delta_net",
        conv_kernel=text.integer("linear_conv_kernel_dim", 4, low=1),
        num_value_heads=text.integer("linear_num_value_heads", low=1),
        value_head_dim=text.integer("linear_value_head_dim", low=1),
        num_key_heads=text.integer("linear_num_key_heads", low=1),
        key_head_dim=text.integer("linear_key_head_dim", low=1),
        ssm_dtype=text.text("mamba_ssm_dtype") or None,
    )
    every = text.integer("full_attention_interval", 4, low=1)
    types = text.texts("layer_types") or tuple(
        "linear_attention" if (index + 1) % every else "full_attention"
        for index in range(layer_count(text))
    )
    return _mix(types, {"linear_attention": state}, attention_spec(text, model_type))


def nemotron_h(text: Fields, model_type: str) -> Layers:
    """Mamba-2, attention and feed-forward layers in an order of their own.

    The recurrent state is float32 where the config names no dtype.
    """
    types = text.texts("layers_block_type") or tuple(
        _NEMOTRON.get(letter, letter) for letter in text.text("hybrid_override_pattern")
    )
    heads = text.integer("mamba_num_heads", low=1)
    head_dim = text.integer("mamba_head_dim", low=1)
    state = StateSpec(
        kind="mamba2",
        conv_kernel=text.integer("conv_kernel", 4, low=1),
        num_value_heads=heads,
        value_head_dim=head_dim,
        key_head_dim=text.integer("ssm_state_size", 128, low=1),
        num_groups=text.integer("n_groups", 1, low=1),
        conv_dim=heads * head_dim,
        ssm_dtype=text.text("mamba_ssm_cache_dtype", "float32"),
        chunk_size=_chunk_size(text),
    )
    if not types:
        raise ConfigError("config_key_missing", (("key", text.path + "layers_block_type"),))
    return _mix(types, {"mamba": state}, attention_spec(text, model_type), {"attention"})


def granite_hybrid(text: Fields, model_type: str) -> Layers:
    """Mamba-2 with a few attention layers by `layer_types` (Granite-4) or their indices (Bamba)."""
    own = set(text.integers("attn_layer_indices"))
    types = text.texts("layer_types") or tuple(
        "attention" if index in own else "mamba" for index in range(layer_count(text))
    )
    return _mix(types, {"mamba": _mamba2(text)}, attention_spec(text, model_type), {"attention"})


def falcon_h1(text: Fields, model_type: str) -> Layers:
    """Attention and Mamba-2 side by side in every layer."""
    layer = LayerSpec(attention_spec(text, model_type), _mamba2(text))
    return (layer,) * layer_count(text)


def zamba2(text: Fields, model_type: str) -> Layers:
    """Mamba-2 in every layer, shared attention beside it in the `hybrid` ones."""
    state = _mamba2(text, groups="mamba_ngroups", heads="n_mamba_heads", head_dim="mamba_headdim")
    attention = attention_spec(text, model_type)
    types = text.texts("layers_block_type") or ("mamba",) * layer_count(text)
    return tuple(
        LayerSpec(attention, state) if name == "hybrid" else LayerSpec(state) for name in types
    )


def jamba(text: Fields, model_type: str) -> Layers:
    """Mamba-1 but for one attention layer a period."""
    period = text.integer("attn_layer_period", 8, low=1)
    offset = text.integer("attn_layer_offset", 4)
    state = StateSpec(
        kind="mamba1",
        conv_kernel=text.integer("mamba_d_conv", 4, low=1),
        key_head_dim=text.integer("mamba_d_state", 16, low=1),
        conv_dim=text.integer("mamba_expand", 2, low=1) * text.integer("hidden_size", low=1),
    )
    types = tuple(
        "attention" if index % period == offset else "mamba" for index in range(layer_count(text))
    )
    return _mix(types, {"mamba": state}, attention_spec(text, model_type), {"attention"})


def lfm2(text: Fields, model_type: str) -> Layers:
    """Short convolutions with some attention layers."""
    own = set(text.integers("full_attn_idxs"))
    types = text.texts("layer_types") or tuple(
        "full_attention" if index in own else "conv" for index in range(layer_count(text))
    )
    channels = text.first_integer("conv_dim", "hidden_size", low=1)
    kernel = text.integer("conv_L_cache", 3, low=1)
    state = StateSpec(kind="short_conv", conv_kernel=kernel, conv_dim=channels)
    return _mix(types, {"conv": state}, attention_spec(text, model_type))


def mamba(text: Fields, model_type: str) -> Layers:
    """Mamba-1 or Mamba-2 in every layer, no attention."""
    expand = text.integer("expand", 2, low=1)
    channels = text.integer("intermediate_size", 0) or expand * text.integer("hidden_size", low=1)
    kernel = text.integer("conv_kernel", 4, low=1)
    size = text.integer("state_size", 16, low=1)
    if model_type == "mamba2":
        state = StateSpec(
            kind="mamba2",
            conv_kernel=kernel,
            num_value_heads=text.integer("num_heads", low=1),
            value_head_dim=text.integer("head_dim", low=1),
            key_head_dim=size,
            num_groups=text.integer("n_groups", 1, low=1),
            conv_dim=channels,
            chunk_size=_chunk_size(text),
        )
    else:
        state = StateSpec("mamba1", kernel, key_head_dim=size, conv_dim=channels)
    return (LayerSpec(state),) * layer_count(text)


def kimi_linear(text: Fields, model_type: str) -> Layers:
    """KDA with some MLA layers; `linear_attn_config` counts layers from 1."""
    del model_type
    linear = text.block("linear_attn_config")
    heads = linear.integer("num_heads", low=1)
    head_dim = linear.integer("head_dim", low=1)
    full = set(linear.integers("full_attn_layers"))
    state = _kda(
        heads,
        head_dim,
        linear.integer("short_conv_kernel_size", 4, low=1),
        bounded_gate=linear.has("gate_lower_bound"),
    )
    types = tuple(
        "full_attention" if index + 1 in full else "kda" for index in range(layer_count(text))
    )
    return _mix(types, {"kda": state}, mla_spec(text))


def bailing(text: Fields, model_type: str) -> Layers:
    """Linear attention (Ling 2.5) or KDA (Ling 3) with one full layer a group."""
    count = layer_count(text)
    group = text.integer("layer_group_size", 1, low=1)
    full: CacheSpec = mla_spec(text) if is_mla(text) else attention_spec(text, model_type)
    heads = text.integer("num_attention_heads", low=1)
    head_dim = text.integer("head_dim", 0) or text.integer("hidden_size", low=1) // heads
    if text.has("short_conv_kernel_size"):
        state = _kda(heads, head_dim, text.integer("short_conv_kernel_size", 4, low=1))
        tail = count // group * group
    else:
        state = StateSpec("linear_attention", 0, num_value_heads=heads, value_head_dim=head_dim)
        tail = count
    types = tuple(
        "full_attention" if (index + 1) % group == 0 or index >= tail else "linear"
        for index in range(count)
    )
    return _mix(types, {"linear": state}, full)


def minimax_text(text: Fields, model_type: str) -> Layers:
    """Lightning attention (0 in `attn_type_list`) with some full layers (MiniMax-01, -M1)."""
    attention = attention_spec(text, model_type)
    heads = text.integer("num_attention_heads", low=1)
    state = StateSpec(
        "linear_attention", 0, num_value_heads=heads, value_head_dim=attention.head_size
    )
    types = text.texts("layer_types") or tuple(
        "full_attention" if full else "linear_attention"
        for full in text.integers("attn_type_list", high=1)
    )
    return _mix(types, {"linear_attention": state}, attention)


def _mix(
    types: tuple[str, ...],
    states: dict[str, StateSpec],
    attention: CacheSpec,
    attention_names: frozenset[str] | set[str] = frozenset({"full_attention", "attention"}),
) -> Layers:
    if len(types) > MAX_LAYERS:
        raise ConfigError(
            "config_too_large",
            (("key", "layer_types"), ("entries", len(types)), ("largest", MAX_LAYERS)),
        )
    return tuple(
        LayerSpec(states.get(name) or (attention if name in attention_names else None))
        for name in types
    )


def _mamba2(
    text: Fields,
    groups: str = "mamba_n_groups",
    heads: str = "mamba_n_heads",
    head_dim: str = "mamba_d_head",
) -> StateSpec:
    expand = text.integer("mamba_expand", 2, low=1)
    channels = text.integer("mamba_d_ssm", 0) or expand * text.integer("hidden_size", low=1)
    count = text.integer(heads, low=1)
    return StateSpec(
        kind="mamba2",
        conv_kernel=text.integer("mamba_d_conv", 4, low=1),
        num_value_heads=count,
        value_head_dim=text.integer(head_dim, channels // count or 1, low=1),
        key_head_dim=text.integer("mamba_d_state", 128, low=1),
        num_groups=text.integer(groups, 1, low=1),
        conv_dim=channels,
        chunk_size=_chunk_size(text),
    )


def _chunk_size(text: Fields) -> int:
    """Tokens the Mamba-2 kernel reads at once. Source: ModelConfig.get_mamba_chunk_size."""
    return text.first_integer("mamba_chunk_size", "chunk_size", default=2048, low=1, high=2**20)


def _kda(heads: int, head_dim: int, kernel: int, *, bounded_gate: bool = False) -> StateSpec:
    """KDA keeps its recurrent state in float32 unless told otherwise."""
    return StateSpec(
        kind="kda",
        conv_kernel=kernel,
        num_value_heads=heads,
        value_head_dim=head_dim,
        num_key_heads=heads,
        key_head_dim=head_dim,
        ssm_dtype="float32",
        bounded_gate=bounded_gate,
    )
