"""Sizes that every decoder's config gives."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.hf_fields import MAX_LAYERS, Fields

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


def read_shape(config: Fields, text: Fields, *, tied: bool = False) -> Shape:
    """Read the sizes; `tied` holds where the config does not say.

    Raises ConfigError where a size is missing or out of bounds.
    """
    hidden = text.integer("hidden_size", low=1, high=LARGEST_SIZE)
    heads = text.integer("num_attention_heads", low=1, high=LARGEST_COUNT)
    ties = text if text.has("tie_word_embeddings") else config
    return Shape(
        hidden_size=hidden,
        intermediate_size=text.integer("intermediate_size", 0, high=LARGEST_SIZE * 4),
        num_hidden_layers=text.integer("num_hidden_layers", low=1, high=MAX_LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=text.integer("num_key_value_heads", heads, low=1, high=LARGEST_COUNT),
        head_dim=text.integer("head_dim", max(1, hidden // heads), low=1, high=LARGEST_COUNT),
        vocab_size=text.integer("vocab_size", low=1, high=2**24),
        tie_word_embeddings=ties.flag("tie_word_embeddings", default=tied),
    )
