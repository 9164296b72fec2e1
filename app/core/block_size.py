"""The block size that a model's attention backends and recurrent layers agree on.

Source: vllm/platforms/interface.py `update_block_size_for_backend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm

from app.core.units import ceil_div

DEFAULT_BLOCK_SIZE = 16


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


@dataclass(frozen=True, slots=True)
class HybridNeeds:
    """What the recurrent layers of a hybrid ask of the block size.

    state_bytes            bytes of the largest state
    bytes_per_token        bytes of a token in one attention layer
    checkpoint_alignment   tokens to which checkpoints inside a prefill keep, 1 for none
    chunk_size             tokens of a chunk where every block keeps a state, 0 where not
    """

    state_bytes: int
    bytes_per_token: int
    checkpoint_alignment: int
    chunk_size: int


def hybrid_block_size(
    block_size: int, kernels: Sequence[tuple[int, ...]], needs: HybridNeeds, fixed: int, least: int
) -> tuple[int, int]:
    """Raise the block until one attention page holds a recurrent layer's whole state.

    `fixed` is the step where a release has one, 0 where the kernels decide; then it is at least
    `least`. Returns the block size and the step itself, which recurrent layers take where every
    block keeps a state.
    """
    step = fixed or max(min(kernels[0]), block_size, least)
    step = lcm(step, needs.checkpoint_alignment)
    if needs.chunk_size:
        chunk = lcm(needs.chunk_size, step)
        wanted = chunk * ceil_div(ceil_div(needs.state_bytes, needs.bytes_per_token), chunk)
    else:
        wanted = step * ceil_div(needs.state_bytes, step * needs.bytes_per_token)
    every = 1 if fixed else lcm(*(min(sizes) for sizes in kernels))
    wanted = ceil_div(wanted, every) * every
    return max(block_size, wanted), wanted


def mixed_dtype_block_size(block_size: int, kernel: tuple[int, ...], wider: int) -> int:
    """Raise the block of a quantised cache until its page holds a layer that stays unquantised.

    `wider` is how many times as wide a token is there.
    """
    smallest = min(kernel)
    step = max(smallest, block_size)
    return step * ceil_div(wider * smallest, step)
