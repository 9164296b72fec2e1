"""Sizes that every decoder's config gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.catalog.hf_fields import MAX_LAYERS, Fields

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
LARGEST_SIZE = 2**20
LARGEST_COUNT = 2**14


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes in elements; names are Hugging Face's."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool


def text_fields(config: Fields) -> Fields:
    """Return the part of a config that describes the language model."""
    for _ in range(len(_NESTED)):
        nested = next((key for key in _NESTED if config.has(key)), None)
        if nested is None:
            break
        config = config.block(nested)
    return config


def read_shape(
    config: Fields, text: Fields, *, tied: bool = False, defaults: Mapping[str, int] | None = None
) -> Shape:
    """Read the sizes; `tied` and `defaults` hold where the config leaves a key out.

    Raises ConfigError where a size is missing or out of bounds.
    """
    known = defaults or {}

    def size(key: str, fallback: int | None, high: int) -> int:
        return text.integer(key, known.get(key, fallback), low=1, high=high)

    hidden = size("hidden_size", None, LARGEST_SIZE)
    heads = size("num_attention_heads", None, LARGEST_COUNT)
    ties = text if text.has("tie_word_embeddings") else config
    return Shape(
        hidden_size=hidden,
        intermediate_size=text.integer(
            "intermediate_size", known.get("intermediate_size", 0), high=LARGEST_SIZE * 4
        ),
        num_hidden_layers=size("num_hidden_layers", None, MAX_LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=size("num_key_value_heads", heads, LARGEST_COUNT),
        head_dim=size("head_dim", max(1, hidden // heads), LARGEST_COUNT),
        vocab_size=size("vocab_size", None, 2**24),
        tie_word_embeddings=ties.flag("tie_word_embeddings", default=tied),
    )
