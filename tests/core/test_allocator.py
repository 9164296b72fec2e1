"""What PyTorch's allocator counts for a tensor."""

import pytest

from app.core.allocator import allocated_bytes
from app.core.units import MIB


@pytest.mark.parametrize(
    ("size", "split", "counted"),
    [
        (1, True, 512),
        (MIB, True, MIB),
        (125 * MIB, True, 126 * MIB),
        (62 * MIB + MIB // 2, True, 62 * MIB + MIB // 2),
        (62 * MIB + MIB // 2, False, 64 * MIB),
        (12 * MIB + MIB // 2, False, 12 * MIB + MIB // 2),
        (128 * MIB, True, 128 * MIB),
    ],
)
def test_what_cannot_be_split_off_is_counted(size: int, counted: int, *, split: bool) -> None:
    """Blocks are 2 MiB multiples from 10 MiB on; up to 1 MiB of a block's end stays with it."""
    assert allocated_bytes(size, split=split) == counted


def test_tensors_that_share_a_segment_share_its_end() -> None:
    """Two of 9.6 MiB leave 0.8 MiB of a 20 MiB segment, two of 9.5 a whole one, two of 9.4 more.

    Nothing else fits into up to 1 MiB, so each carries its share, in whole bytes.
    """
    size = 9 * MIB + 3 * MIB // 5 // 512 * 512
    assert allocated_bytes(size, split=True) == size + (20 * MIB - 2 * size) // 2
    assert allocated_bytes(19 * MIB // 2, split=True) == 10 * MIB
    assert allocated_bytes(19 * MIB // 2 - 512, split=True) == 19 * MIB // 2 - 512
    third = allocated_bytes(13 * MIB // 2, split=True)
    assert (third, type(third)) == (13 * MIB // 2 + MIB // 2 // 3, int)
