"""Ways of laying out attention layers, one function each, read from a config.json.

Rules: vllm/model_executor/models and vllm/models (0.32.0, 0.33.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.hf_fields import MAX_LAYERS, ConfigError, Fields
from app.core.model_spec import AttentionKind, AttentionSpec, LayerSpec, MlaSpec, PackedSpec

Layers = tuple[LayerSpec, ...]
HEADS = 2**14
_INDEXED_RATIO = 4
# Sizes that a config may leave out because the model class of transformers 5 has them.
_CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "gemma2": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
    "gemma3": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
    "gemma3n": {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256},
}
# Every n-th layer attends to everything where `layer_types` is absent.
_FULL_EVERY = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gemma4": 6,
    "cohere2": 4,
    "olmo3": 4,
    "exaone4": 4,
}


def layer_count(text: Fields) -> int:
    """Count the decoder layers."""
    keys = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
    return text.first_integer(*keys, low=1, high=MAX_LAYERS)


def window_of(text: Fields) -> int | None:
    """Sliding window of the config; 0 and `use_sliding_window: false` mean none."""
    if text.values.get("use_sliding_window") is False:
        return None
    return text.integer("sliding_window", 0) or None


def attention_spec(
    text: Fields,
    model_type: str = "",
    kind: AttentionKind = "full_attention",
    window: int | None = None,
    *,
    sinks: bool = False,
) -> AttentionSpec:
    """Key/value cache with the heads of the config.

    Source: vllm/transformers_utils/model_arch_config_convertor.py `get_total_num_kv_heads`,
    `get_head_size`.
    """
    known = _CLASS_DEFAULTS.get(model_type, {})
    keys = ("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads")
    heads = text.first_integer(*keys, default=known.get("num_attention_heads"), low=1, high=HEADS)
    default_kv = known.get("num_key_value_heads", heads)
    kv_keys = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num")
    kv_heads = text.first_integer(
        *kv_keys, "num_attention_groups", default=default_kv, low=1, high=HEADS
    )
    if text.values.get("multi_query") is True and not text.values.get("new_decoder_architecture"):
        kv_heads = 1
    head_size = text.first_integer(
        "head_dim", "hidden_size_per_head", "attention_head_dim", default=0, high=HEADS
    ) or known.get("head_dim", 0)
    if not head_size:
        hidden = text.first_integer("hidden_size", "n_embd", "d_model", low=1)
        head_size = max(1, hidden // heads)
    return AttentionSpec(kind, kv_heads, head_size, head_size, window, sinks)


def is_mla(text: Fields) -> bool:
    """True where the config compresses keys and values into a latent vector."""
    return text.has("kv_lora_rank")


def mla_spec(text: Fields, *, indexer: bool = False) -> MlaSpec:
    """Latent cache of an MLA layer, with the keys of an indexer of its own if it has one."""
    return MlaSpec(
        kv_lora_rank=text.integer("kv_lora_rank", low=1),
        qk_rope_head_dim=text.integer("qk_rope_head_dim", 0),
        index_head_dim=text.integer("index_head_dim", 128, low=1) if indexer else None,
        sparse=text.has("index_topk"),
    )


def decoder(text: Fields, model_type: str) -> Layers:
    """Attention in every layer: MLA, by `layer_types`, or the same everywhere."""
    if is_mla(text):
        return latent(text, model_type)
    if text.has("layer_types") or model_type in _FULL_EVERY:
        return by_layer_types(text, model_type)
    window = window_of(text)
    kind: AttentionKind = "sliding_window" if window else "full_attention"
    return (LayerSpec(attention_spec(text, model_type, kind, window)),) * layer_count(text)


def latent(text: Fields, model_type: str) -> Layers:
    """MLA in every layer; sparse MLA may share one indexer over several layers.

    Source: vllm/models/deepseek_v32/attention.py (`index_topk_freq`, `index_topk_pattern`).
    """
    count = layer_count(text) * (2 if model_type == "longcat_flash" else 1)
    if not text.has("index_topk"):
        return (LayerSpec(mla_spec(text)),) * count
    frequency = text.integer("index_topk_freq", 1, low=1)
    offset = text.integer("index_skip_topk_offset", 2)
    pattern = text.values.get("index_topk_pattern")
    layers = []
    for index in range(count):
        if isinstance(pattern, str | list):
            shared = index < len(pattern) and pattern[index] == "S"
        else:
            shared = max(index - offset + 1, 0) % frequency != 0
        layers.append(LayerSpec(mla_spec(text, indexer=not shared)))
    return tuple(layers)


def _layer_types(text: Fields, model_type: str) -> tuple[str, ...]:
    """`layer_types`, or what the model class would fill in for it."""
    types = text.texts("layer_types")
    count = layer_count(text)
    if not types:
        every = text.first_integer(
            "sliding_window_pattern",
            "_sliding_window_pattern",
            default=_FULL_EVERY.get(model_type, 1),
            low=1,
        )
        types = tuple(
            "sliding_attention" if (index + 1) % every else "full_attention"
            for index in range(count)
        )
    if len(types) < count:
        raise ConfigError(
            "config_value_invalid",
            (("key", text.path + "layer_types"), ("value", len(types)), ("smallest", count)),
        )
    return types[:count]


def by_layer_types(text: Fields, model_type: str) -> Layers:
    """Full and sliding layers, some of which may read an earlier layer's cache (Gemma-3n, -4)."""
    types = _layer_types(text, model_type)
    window = window_of(text) or (4096 if model_type in _FULL_EVERY else None)
    if window and model_type == "cohere2":
        window += 1
    full = LayerSpec(attention_spec(text, model_type))
    sliding = full
    if window:
        sliding = LayerSpec(attention_spec(text, model_type, "sliding_window", window))
    own = len(types) - text.integer("num_kv_shared_layers", 0)
    return tuple(
        LayerSpec(None)
        if index >= own
        else sliding
        if name in {"sliding_attention", "sliding"}
        else full
        for index, name in enumerate(types)
    )


def gemma4(text: Fields, model_type: str) -> Layers:
    """Heads of another number and size in the full layers; see `_by_layer_types` for the rest."""
    head_size = text.first_integer("global_head_dim", "head_dim", default=256, low=1, high=HEADS)
    plain = attention_spec(text, model_type)
    kv_heads = plain.num_kv_heads
    if text.flag("attention_k_eq_v"):
        kv_heads = text.integer("num_global_key_value_heads", kv_heads, low=1)
    full = LayerSpec(AttentionSpec("full_attention", kv_heads, head_size, head_size))
    return tuple(
        full
        if isinstance(layer.cache, AttentionSpec) and layer.cache.kind == "full_attention"
        else layer
        for layer in by_layer_types(text, model_type)
    )


def gpt_oss(text: Fields, model_type: str) -> Layers:
    """Sliding on even layers whatever `layer_types` says, sinks everywhere."""
    full = LayerSpec(attention_spec(text, model_type, sinks=True))
    window = text.integer("sliding_window", 128, low=1)
    sliding = LayerSpec(attention_spec(text, model_type, "sliding_window", window, sinks=True))
    return tuple(full if index % 2 else sliding for index in range(layer_count(text)))


def llama4(text: Fields, model_type: str) -> Layers:
    """Chunked attention except in the layers without positions, every fourth by default."""
    chunk = text.integer("attention_chunk_size", 8192)
    without = text.integers("no_rope_layers")
    every = text.integer("no_rope_layer_interval", 4, low=1)
    full = LayerSpec(attention_spec(text, model_type))
    local = LayerSpec(attention_spec(text, model_type, "chunked_local", chunk)) if chunk else full
    return tuple(
        full if (not without[i] if i < len(without) else (i + 1) % every == 0) else local
        for i in range(layer_count(text))
    )


def mimo(text: Fields, model_type: str) -> Layers:
    """Own head counts for the sliding layers (1 in `hybrid_layer_pattern`), sinks only there."""
    pattern = text.integers("hybrid_layer_pattern", high=1)
    full, sliding = _mimo_specs(text, model_type)
    return tuple(
        LayerSpec(sliding if index < len(pattern) and pattern[index] else full)
        for index in range(layer_count(text))
    )


def mimo_draft(text: Fields, model_type: str) -> Layers:
    """The one draft layer of MiMo-V2 that vLLM runs: it slides, whatever the config says."""
    return (LayerSpec(_mimo_specs(text, model_type)[1]),)


def _mimo_specs(text: Fields, model_type: str) -> tuple[AttentionSpec, AttentionSpec]:
    """Caches of a full and of a sliding layer."""
    plain = attention_spec(text, model_type)
    v_size = text.integer("v_head_dim", plain.head_size, low=1)
    window = text.first_integer("sliding_window_size", "sliding_window", default=128, low=1)
    full = AttentionSpec("full_attention", plain.num_kv_heads, plain.head_size, v_size)
    return full, AttentionSpec(
        "sliding_window",
        text.integer("swa_num_key_value_heads", plain.num_kv_heads, low=1),
        text.integer("swa_head_dim", plain.head_size, low=1),
        text.integer("swa_v_head_dim", v_size, low=1),
        window,
        sinks=text.flag("add_swa_attention_sink_bias"),
    )


def minimax_m3(text: Fields, model_type: str) -> Layers:
    """Index keys beside the cache of the layers that pick sparse blocks."""
    sparse = text.block("sparse_attention_config")
    chosen = sparse.integers("sparse_attention_freq", high=1)
    plain = attention_spec(text, model_type)
    size = sparse.integer("sparse_index_dim", 128, low=1)
    picking = AttentionSpec(
        plain.kind, plain.num_kv_heads, plain.head_size, plain.head_size_v, index_head_dim=size
    )
    return tuple(
        LayerSpec(picking if index < len(chosen) and chosen[index] else plain)
        for index in range(layer_count(text))
    )


def packed(text: Fields, model_type: str) -> Layers:
    """DeepSeek-V4: a window in every layer, compressed states by `compress_ratios`."""
    del model_type
    ratios = text.integers("compress_ratios", high=2**16)
    window = text.integer("sliding_window", 128, low=1)
    head_size = text.integer("head_dim", 512, low=1)
    index_size = text.integer("index_head_dim", 128, low=1)
    return tuple(
        LayerSpec(
            PackedSpec(ratio, window, head_size, index_size if ratio == _INDEXED_RATIO else None)
        )
        for ratio in (ratios[i] if i < len(ratios) else 0 for i in range(layer_count(text)))
    )


def nemotron_nas(text: Fields, model_type: str) -> Layers:
    """Llama-Nemotron: own head groups in every block, some without attention."""
    heads = text.integer("num_attention_heads", low=1, high=HEADS)
    head_size = text.integer("head_dim", 0, high=HEADS) or max(
        1, text.integer("hidden_size", low=1) // heads
    )
    layers = []
    for block in text.blocks("block_configs"):
        own = block.block("attention")
        if own.flag("no_op") or own.flag("replace_with_linear"):
            layers.append(LayerSpec(None))
            continue
        group = own.integer("n_heads_in_group", 1, low=1)
        kv_heads = max(1, heads // group)
        layers.append(LayerSpec(AttentionSpec("full_attention", kv_heads, head_size, head_size)))
    if not layers:
        raise ConfigError("config_key_missing", (("key", text.path + "block_configs"),))
    del model_type
    return tuple(layers)


def encoder_decoder(text: Fields, model_type: str) -> Layers:
    """Whisper and its like: self-attention and cross-attention in every decoder layer."""
    own = attention_spec(text, model_type)
    cross = attention_spec(text, model_type, "cross_attention")
    return (LayerSpec(own, cross),) * text.first_integer(
        "decoder_layers", "num_hidden_layers", low=1, high=MAX_LAYERS
    )
