"""PyTorch's caching allocator: how many bytes of a card a tensor takes beyond its own.

What `Model loading took` measures is the allocator's count, and that counts what is left of a
block too small to be split off. Source: pytorch, c10/cuda/CUDACachingAllocator.cpp
(`get_allocation_size`, `should_split`), 2.7 to 2.13.
"""

from __future__ import annotations

from app.core.units import MIB, ceil_div

ROUNDING_BYTES = 512
LARGE_ALLOCATION_BYTES = 10 * MIB
LARGE_ROUNDING_BYTES = 2 * MIB
SHARED_SEGMENT_BYTES = 20 * MIB
SMALL_BYTES = MIB


def allocated_bytes(size_bytes: int, *, split: bool) -> int:
    """Bytes the allocator counts for one tensor that is allocated while a model is built.

    `split`: what is left of a block is split off when it exceeds 1 MiB; from vLLM 0.21.0 (it loads
    with max_split_size_mb 20) not from blocks above 20 MiB.
    """
    size = ceil_div(size_bytes, ROUNDING_BYTES) * ROUNDING_BYTES
    if size <= SMALL_BYTES:
        return size
    if size < LARGE_ALLOCATION_BYTES:
        return size + _shared_rest(size)
    rest = -size % LARGE_ROUNDING_BYTES
    whole = not split and size > SHARED_SEGMENT_BYTES
    return size + rest if whole or rest <= SMALL_BYTES else size


def _shared_rest(size: int) -> int:
    """Share of a 20 MiB segment's unusable end that each of the tensors in it carries."""
    tensors, rest = divmod(SHARED_SEGMENT_BYTES, size)
    return rest // tensors if rest <= SMALL_BYTES else 0
