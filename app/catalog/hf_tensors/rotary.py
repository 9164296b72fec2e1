"""Rotary caches: the cos/sin tables vLLM allocates beside the weights.

One table for every distinct rope of a model. Source: vllm/model_executor/layers/
rotary_embedding/__init__.py `get_rope` (0.32.0).
"""

from __future__ import annotations

from app.catalog.hf_fields import Fields
from app.core.model_spec import EVERY_STAGE, TensorGroup

MAX_POSITIONS = 2**28
# For the temporal axis of videos (mrope.py).
MROPE_POSITIONS_FACTOR = 4
_ROPE_BLOCKS = ("rope_parameters", "rope_scaling")
_YARN = frozenset({"yarn", "deepseek_yarn", "deepseek_llama_scaling"})


def rope_block(text: Fields, kind: str = "") -> Fields:
    """Rope parameters under their newer or older name; `kind` picks a layer type's own block."""
    key = next((key for key in _ROPE_BLOCKS if text.has(key)), _ROPE_BLOCKS[0])
    block = text.block(key)
    return block.block(kind) if kind and block.has(kind) else block


def rotary_cache(
    text: Fields,
    head_dim: int,
    *,
    rope: Fields | None = None,
    whole: bool = False,
    mrope_positions_factor: int = 1,
    dtype: str | None = None,
) -> list[TensorGroup]:
    """Table of one rope for heads of `head_dim`; empty where the config limits no positions.

    `whole`: every dimension of the head turns, whatever `partial_rotary_factor` says.
    `mrope_positions_factor`: how many times the positions M-RoPE has a row for in 0.32.0; where
    that is one, older releases still had four times (part `mrope_positions`).
    """
    rope = rope_block(text) if rope is None else rope
    rows = _rows(rope, text.integer("max_position_embeddings", 0, high=MAX_POSITIONS))
    columns = head_dim if whole else _turned(text, rope, head_dim)
    if not rope.has("mrope_section"):
        return rotary_table(rows, columns, dtype)
    tables = rotary_table(rows * mrope_positions_factor, columns, dtype)
    further = rows * (MROPE_POSITIONS_FACTOR - mrope_positions_factor)
    return tables + rotary_table(further, columns, dtype, "mrope_positions")


def rotary_table(
    rows: int, columns: int, dtype: str | None = None, part: str = "runtime"
) -> list[TensorGroup]:
    """Table of given size, on every pipeline stage."""
    if not rows or not columns:
        return []
    name = "rotary_emb.cos_sin_cache"
    return [TensorGroup(name, "buffer", EVERY_STAGE, rows, columns, part=part, dtype=dtype)]


def _turned(text: Fields, rope: Fields, head_dim: int) -> int:
    if text.has("rotary_dim"):
        return text.integer("rotary_dim", high=2**14)
    share = text.number("partial_rotary_factor", 1.0, high=1.0)
    return int(head_dim * rope.number("partial_rotary_factor", share, high=1.0))


def _rows(rope: Fields, positions: int) -> int:
    kind = rope.text("rope_type", rope.text("type", "default"))
    factor = rope.number("factor", 1.0, high=float(2**16))
    original = rope.integer("original_max_position_embeddings", positions, high=MAX_POSITIONS)
    if kind in _YARN:
        return int(original * factor)
    if kind == "longrope":
        return original + positions
    if kind in {"linear", "dynamic", "ntk"}:
        return int(positions * factor)
    return positions
