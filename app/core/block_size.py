"""The block size that a model's attention backends and recurrent layers agree on.

Source: vllm/platforms/interface.py `update_block_size_for_backend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import lcm

from app.core.units import ceil_div

DEFAULT_BLOCK_SIZE = 16
_MLA_HYBRID_ALIGNMENT = 128


def common_block_size(kernels: Sequence[tuple[int, ...]]) -> int:
    """Smallest block size every backend takes; 16 where all do.

    `kernels` holds the sizes of which a block must be a multiple, one tuple a backend.
    """
    if all(_fits(DEFAULT_BLOCK_SIZE, sizes) for sizes in kernels):
        return DEFAULT_BLOCK_SIZE
    if len(kernels) == 1:
        return min(kernels[0])
    candidates = sorted({lcm(*sizes) for sizes in product(*kernels)})
    return next(size for size in candidates if all(_fits(size, own) for own in kernels))


def _fits(block_size: int, sizes: tuple[int, ...]) -> bool:
    return any(block_size % size == 0 for size in sizes)


def hybrid_block_size(
    block_size: int,
    kernels: Sequence[tuple[int, ...]],
    state_bytes: int,
    bytes_per_token: int,
    *,
    use_mla: bool,
    checkpoint_alignment: int,
) -> int:
    """Raise the block until one attention page holds a recurrent layer's whole state.

    `bytes_per_token` is one attention layer's, `state_bytes` one recurrent layer's.
    """
    step = max(min(kernels[0]), block_size)
    if use_mla:
        step = max(step, _MLA_HYBRID_ALIGNMENT)
    step = lcm(step, checkpoint_alignment or 1)
    wanted = step * ceil_div(state_bytes, step * bytes_per_token)
    every = lcm(*(min(sizes) for sizes in kernels))
    return max(block_size, ceil_div(wanted, every) * every)


def mixed_dtype_block_size(
    block_size: int, kernel: tuple[int, ...], bytes_per_token: int, widest_bytes_per_token: int
) -> int:
    """Raise the block of a quantised cache until its page holds a layer that stays unquantised."""
    if widest_bytes_per_token == bytes_per_token:
        return block_size
    smallest = min(kernel)
    step = max(smallest, block_size)
    needed = widest_bytes_per_token * smallest
    return max(block_size, step * ceil_div(needed, step * bytes_per_token))
