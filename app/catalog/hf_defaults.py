"""What a config.json leaves to Hugging Face's configuration classes, filled in."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.hf_fields import NESTED_TEXT, Fields
from app.catalog.hf_tensors.mamba import nemotron_layer_kinds

# Published configs of these families hold only what differs from the class's defaults.
# Source: transformers, models/*/configuration_*.py.
_DEFAULTS: dict[str, dict[str, int]] = {
    "gemma3": {
        "vocab_size": 262_208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    },
    "llama4": {
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
}
# Decoders whose class ties the output head to the embedding where the config says nothing.
_TIED = frozenset(
    {
        *("bloom", "cohere", "cohere2", "ernie4_5", "ernie4_5_moe", "falcon", "falcon_mamba"),
        *("gemma", "gemma2", "gemma3n_text", "gpt2", "gpt_bigcode", "lfm2", "lfm2_moe", "mamba"),
        *("minicpm3", "mpt", "opt", "smollm3", "starcoder2", "zamba2"),
    }
)


def completed(config: Mapping[str, object], family: str) -> Mapping[str, object]:
    """Return the config with the defaults of its family in its text part; others as they are."""
    return _completed(config, family, len(NESTED_TEXT))


def _completed(config: Mapping[str, object], family: str, depth: int) -> Mapping[str, object]:
    for key in NESTED_TEXT if depth else ():
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return {**config, key: _completed(inner, family, depth - 1)}
    defaults: dict[str, int] = dict(_DEFAULTS.get(family, {}))
    if family == "nemotron_h":
        defaults["num_hidden_layers"] = len(nemotron_layer_kinds(Fields(config)))
    if str(config.get("model_type")) in _TIED:
        defaults["tie_word_embeddings"] = True
    missing = {key: value for key, value in defaults.items() if config.get(key) is None}
    return {**config, **missing} if missing else config
