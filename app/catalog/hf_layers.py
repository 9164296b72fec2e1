"""Turns a Hugging Face config.json into the caches of its layers and its length keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.model_spec import AttentionSpec, LayerSpec, LengthSpec

Config = Mapping[str, Any]

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
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


class MissingConfigKeyError(ValueError):
    """A key without which the layers of a config cannot be told; `key` names it."""

    def __init__(self, key: str) -> None:
        """Keep the key for the message of the page."""
        super().__init__(f"config.json has no {key}")
        self.key = key


def text_config(config: Config) -> Config:
    """Return the part of a config that describes the language model, however deep it is nested."""
    for key in _NESTED:
        nested = config.get(key)
        if isinstance(nested, Mapping):
            return text_config(nested)
    return config


def cache_layers(config: Config) -> tuple[LayerSpec, ...]:
    """List what each decoder layer keeps in the cache. Raises MissingConfigKeyError."""
    text = text_config(config)
    heads = _integer(text, "num_attention_heads")
    head_dim = text.get("head_dim") or _integer(text, "hidden_size") // heads
    spec = AttentionSpec(
        kind="full_attention",
        num_kv_heads=text.get("num_key_value_heads") or heads,
        head_size=head_dim,
        head_size_v=text.get("v_head_dim") or head_dim,
    )
    return (LayerSpec(spec),) * _integer(text, "num_hidden_layers")


def mtp_layers(config: Config) -> tuple[LayerSpec, ...]:
    """List the caches of the multi-token-prediction layers that the checkpoint brings."""
    del config
    return ()


def length_spec(config: Config) -> LengthSpec:
    """Collect what `--max-model-len` is derived from."""
    text = text_config(config)
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    return LengthSpec(
        keys=tuple((key, int(text[key])) for key in LENGTH_KEYS if text.get(key) is not None),
        rope_type=rope.get("rope_type") or rope.get("type"),
        rope_factor=rope.get("factor"),
        original_max_position_embeddings=(
            rope.get("original_max_position_embeddings")
            or text.get("original_max_position_embeddings")
        ),
        model_type=str(text.get("model_type") or config.get("model_type") or ""),
    )


def _integer(text: Config, key: str) -> int:
    value = text.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise MissingConfigKeyError(key)
    return value
