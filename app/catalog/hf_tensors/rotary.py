"""Rotary caches: the cos/sin tables vLLM allocates beside the weights.

One table for every distinct rope of a model. Source: vllm/model_executor/layers/
rotary_embedding/__init__.py `get_rope` (0.32.0).
"""

from __future__ import annotations

from app.catalog.hf_fields import Fields
from app.core.model_spec import EVERY_STAGE, TensorGroup

MAX_POSITIONS = 2**28
# M-RoPE keeps four times the positions, for the temporal axis of videos (mrope.py).
MROPE_POSITIONS_FACTOR = 4


def rope_block(text: Fields, kind: str = "") -> Fields:
    """Rope parameters under their newer or older name; `kind` picks a layer type's own block."""
    block = text.block("rope_parameters" if text.has("rope_parameters") else "rope_scaling")
    return block.block(kind) if kind and block.has(kind) else block


def rotary_cache(text: Fields, head_dim: int, rope: Fields | None = None) -> tuple[TensorGroup, ...]:
    """The table of one rope for heads of `head_dim`; none where positions are not limited."""
    rope = rope_block(text) if rope is None else rope
    positions = text.integer("max_position_embeddings", 0, high=MAX_POSITIONS)
    share = rope.number("partial_rotary_factor", text.number("partial_rotary_factor", 1.0, high=1.0))
    rows = _rows(rope, positions)
    columns = int(head_dim * share)
    if not rows or not columns:
        return ()
    return (
        TensorGroup(
            "rotary_emb.cos_sin_cache", "buffer", EVERY_STAGE, rows, columns, part="runtime"
        ),
    )


def _rows(rope: Fields, positions: int) -> int:
    kind = rope.text("rope_type", rope.text("type", "default"))
    factor = rope.number("factor", 1.0, high=float(2**16))
    original = rope.integer("original_max_position_embeddings", positions, high=MAX_POSITIONS)
    rows = positions
    if kind in {"yarn", "deepseek_yarn", "deepseek_llama_scaling"}:
        rows = int(original * factor)
    elif kind == "longrope":
        rows = original + positions
    elif kind in {"linear", "dynamic", "ntk"}:
        rows = int(positions * factor)
    if rope.has("mrope_section"):
        rows *= MROPE_POSITIONS_FACTOR
    return rows
