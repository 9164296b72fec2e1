"""Decoders whose layers differ in size: Nemotron-NAS (DeciLM) and MiMo-V2."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.hf_tensors.blocks import Attention, Ends, Mlp, attention, ends, mlp
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
from app.catalog.hf_tensors.shape import LARGEST_COUNT
from app.core.model_spec import LAST_STAGE, TensorGroup

# configuration_decilm.py rounds an MLP's width up to this.
_MLP_MULTIPLE = 256


def decilm(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Llama with attention or MLP narrowed or left out per layer, as `block_configs` says."""
    shape = decoder_shape(config, text, traits)
    heads = read_attention(text, shape, traits)
    blocks = text.blocks("block_configs")
    if len(blocks) < shape.num_hidden_layers:
        raise ConfigError("config_key_missing", (("key", f"{text.path}block_configs"),))
    groups = ends(Ends(shape.vocab_size, shape.hidden_size, shape.tie_word_embeddings))
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        _decilm_attention(layer, blocks[index].block("attention"), heads)
        _decilm_mlp(layer, blocks[index].block("ffn"), shape.hidden_size)
        groups += layer.groups
    return groups + rotary_cache(text, shape.head_dim)


def _decilm_attention(layer: LayerTensors, block: Fields, heads: Attention) -> None:
    if block.flag("no_op"):
        return
    layer.norms(heads.hidden_size, "input_layernorm")
    if block.flag("replace_with_linear"):
        size = (heads.hidden_size, heads.hidden_size)
        layer.linear("self_attn.linear_attn", "attn", size)
        return
    shared_by = block.integer("n_heads_in_group", 1, low=1, high=LARGEST_COUNT)
    attention(layer, replace(heads, kv_heads=max(1, heads.heads // shared_by)))


def _decilm_mlp(layer: LayerTensors, block: Fields, hidden_size: int) -> None:
    if block.flag("no_op"):
        return
    layer.norms(hidden_size, "post_attention_layernorm")
    if block.flag("replace_with_linear"):
        layer.linear("mlp.linear_mlp", "mlp", (hidden_size, hidden_size))
        return
    width = int(2 * block.number("ffn_mult", 1.0, high=64.0) * hidden_size / 3)
    width += -width % _MLP_MULTIPLE
    mlp(layer, "mlp", "mlp", Mlp(hidden_size, width))


def mimo_v2(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """MiMo-V2: sliding-window layers with heads and sinks of their own."""
    shape = decoder_shape(config, text, traits)
    moe, dense = read_experts(text, shape, traits), read_mlp(text, shape, traits)
    sparse = expert_layers(text, shape.num_hidden_layers)
    full = replace(
        read_attention(text, shape, traits),
        head_dim_v=text.integer("v_head_dim", shape.head_dim, low=1, high=LARGEST_COUNT),
        sinks="attention_sink_bias" if text.flag("add_full_attention_sink_bias") else "",
    )
    sliding = _mimo_sliding(text, full)
    pattern = text.integers("hybrid_layer_pattern", high=1)
    groups = decoder_ends(shape, traits)
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        windowed = index < len(pattern) and pattern[index] == 1
        block = moe if moe and index in sparse else dense
        plain_layer(layer, traits, sliding if windowed else full, block)
        groups += layer.groups
    tables = rotary_cache(text, full.head_dim) + rotary_cache(text, sliding.head_dim)
    return groups + _mimo_drafts(text, sliding, dense) + tables


def _mimo_drafts(text: Fields, heads: Attention, dense: Mlp) -> list[TensorGroup]:
    """Three dense draft layers in the files, of which vLLM loads the first (mimo_v2_mtp.py)."""
    groups: list[TensorGroup] = []
    for number in range(text.integer("num_nextn_predict_layers", 3, high=64)):
        layer = LayerTensors(LAST_STAGE, "mtp" if number == 0 else "unused", "mtp.layers.")
        hidden = heads.hidden_size
        layer.plain("eh_proj", "mtp", (hidden, 2 * hidden))
        layer.norms(hidden, "enorm", "hnorm", "input_layernorm", "pre_mlp_layernorm")
        layer.norms(hidden, "final_layernorm")
        attention(layer, heads)
        mlp(layer, "mlp", "mlp", dense)
        groups += layer.groups
    return groups


def _mimo_sliding(text: Fields, full: Attention) -> Attention:
    def size(key: str, default: int) -> int:
        return text.integer(key, default, low=1, high=LARGEST_COUNT)

    return replace(
        full,
        heads=size("swa_num_attention_heads", full.heads),
        kv_heads=size("swa_num_key_value_heads", full.kv_heads),
        head_dim=size("swa_head_dim", full.head_dim),
        head_dim_v=size("swa_v_head_dim", full.head_dim_v),
        sinks="attention_sink_bias" if text.flag("add_swa_attention_sink_bias") else "",
    )
