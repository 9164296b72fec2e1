"""Turns a Hugging Face config.json into the caches of its layers and its length keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.catalog import hf_attention, hf_hybrids
from app.catalog.hf_attention import Layers, attention_spec, is_mla, mla_spec
from app.catalog.hf_fields import MAX_LAYERS, Fields, text_fields
from app.core.model_spec import AttentionSpec, CacheSpec, LayerSpec, LengthSpec, PackedSpec

Config = Mapping[str, object]

LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_MM_PREFIX = frozenset({"bagel", "gemma3", "molmo2", "moondream3", "paligemma"})
_LARGEST_LENGTH = 2**40
# What is not named here has attention in every layer: see hf_attention.decoder.
_LAYOUTS: Mapping[str, Callable[[Fields, str], Layers]] = {
    "bailing_hybrid": hf_hybrids.bailing,
    "bamba": hf_hybrids.granite_hybrid,
    "deepseek_v4": hf_attention.packed,
    "falcon_h1": hf_hybrids.falcon_h1,
    "falcon_mamba": hf_hybrids.mamba,
    "gemma4": hf_attention.gemma4,
    "gpt_oss": hf_attention.gpt_oss,
    "granitemoehybrid": hf_hybrids.granite_hybrid,
    "jamba": hf_hybrids.jamba,
    "kimi_linear": hf_hybrids.kimi_linear,
    "lfm2": hf_hybrids.lfm2,
    "lfm2_moe": hf_hybrids.lfm2,
    "llama4": hf_attention.llama4,
    "mamba": hf_hybrids.mamba,
    "mamba2": hf_hybrids.mamba,
    "mimo_v2": hf_attention.mimo,
    "mimo_v2_flash": hf_attention.mimo,
    "minimax": hf_hybrids.minimax_text,
    "minimax_m3": hf_attention.minimax_m3,
    "minimax_text_01": hf_hybrids.minimax_text,
    "nemotron-nas": hf_attention.nemotron_nas,
    "nemotron_h": hf_hybrids.nemotron_h,
    "olmo_hybrid": hf_hybrids.qwen3_next,
    "qwen3_5": hf_hybrids.qwen3_next,
    "qwen3_5_moe": hf_hybrids.qwen3_next,
    "qwen3_next": hf_hybrids.qwen3_next,
    "whisper": hf_attention.encoder_decoder,
    "zamba2": hf_hybrids.zamba2,
}


def cache_layers(config: Config) -> Layers:
    """List what each decoder layer keeps in the cache. Raises ConfigError."""
    text = text_fields(Fields.of(config))
    model_type = _model_type(text, config)
    return _LAYOUTS.get(model_type, hf_attention.decoder)(text, model_type)


def mtp_layers(config: Config) -> Layers:
    """List the caches of the multi-token-prediction layers that the checkpoint brings."""
    text = text_fields(Fields.of(config))
    model_type = _model_type(text, config)
    if _LAYOUTS.get(model_type) is hf_attention.mimo:
        return hf_attention.mimo_draft(text, model_type)
    count = text.first_integer(
        "num_nextn_predict_layers",
        "mtp_num_hidden_layers",
        default=int(model_type == "qwen3_next"),
        high=MAX_LAYERS,
    )
    if not count:
        return ()
    if _LAYOUTS.get(model_type) is hf_attention.packed:
        window = text.integer("sliding_window", 128, low=1)
        cache: CacheSpec = PackedSpec(0, window, text.integer("head_dim", 512, low=1))
    elif is_mla(text):
        cache = mla_spec(text, indexer=text.has("index_topk"))
    else:
        cache = attention_spec(text, model_type)
    return (LayerSpec(cache),) * count


def mm_prefix(config: Config) -> bool:
    """True where images attend in both directions, which not every attention backend can do."""
    fields = Fields.of(config)
    text = text_fields(fields)
    if fields.has("is_mm_prefix_lm"):
        return fields.flag("is_mm_prefix_lm")
    if fields.text("model_type").startswith("gemma4"):
        return text.values.get("use_bidirectional_attention") == "vision"
    return fields.text("model_type") in _MM_PREFIX


def has_sinks(layers: Layers) -> bool:
    """True where a layer has attention sinks."""
    return any(isinstance(layer.cache, AttentionSpec) and layer.cache.sinks for layer in layers)


def length_spec(config: Config) -> LengthSpec:
    """Collect what `--max-model-len` is derived from. Raises ConfigError.

    A model without a rope block has rope_type None.
    """
    text = text_fields(Fields.of(config))
    rope = _rope(text)
    kind = rope.text("rope_type") or rope.text("type")
    original = rope.integer("original_max_position_embeddings", 0, high=_LARGEST_LENGTH)
    if not original:
        original = text.integer("original_max_position_embeddings", 0, high=_LARGEST_LENGTH)
    return LengthSpec(
        keys=tuple(
            (key, text.integer(key, low=1, high=_LARGEST_LENGTH))
            for key in LENGTH_KEYS
            if text.has(key)
        ),
        rope_type=kind or None,
        # transformers wants 1 or more as well; with 0 no request would have a length
        rope_factor=rope.number("factor", 1.0, low=1.0) if rope.has("factor") else None,
        original_max_position_embeddings=original or None,
        model_type=text.text("model_type") or Fields.of(config).text("model_type"),
    )


def _rope(text: Fields) -> Fields:
    """Find the rope block; of one block per layer type the last decides, as in vLLM."""
    for key in ("rope_parameters", "rope_scaling"):
        block = text.block(key)
        nested = [name for name, value in block.values.items() if isinstance(value, Mapping)]
        if nested:
            return block.block(nested[-1])
        if block.values:
            return block
    return Fields({})


def _model_type(text: Fields, config: Config) -> str:
    """Reduce `gemma3_text` and the like to one name per way of laying out layers."""
    name = text.text("model_type") or Fields.of(config).text("model_type")
    for suffix in ("_unified_text", "_unified", "_text"):
        name = name.removesuffix(suffix)
    return name
