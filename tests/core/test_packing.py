"""How DeepSeek-V4's pages of several sizes are grouped, so that one block holds all of them."""

from dataclasses import replace

import pytest

from app.core.groups import GroupingRules, form_groups
from app.core.kv_spec import KvSpec
from app.core.packed_tuples import slot_bytes, tuple_bytes, tuple_groups
from app.core.packing import approximate_gcd, packed_groups

LATENT = KvSpec("mla", 256, 100)
INDEX = KvSpec("mla", 256, 40)
WINDOW = KvSpec("sliding_window_mla", 64, 100, window=128)


@pytest.mark.parametrize(
    ("values", "smallest", "chunk"),
    [
        ([21, 43, 20], 21, 22),
        ([8, 16], 4, 8),
        ([7], 1, 7),
        ([5, 5], 1, 5),
        ([3, 5], 4, 5),
        ([2, 5], 2, 2),
        ([6, 6, 6], 6, 6),
    ],
)
def test_the_chunk_pads_least_and_is_the_largest_of_equals(
    values: list[int], smallest: int, chunk: int
) -> None:
    """21, 43 and 20 in chunks of 22 waste 1 + 1 + 2; of 7 alone both 1 and 7 waste nothing."""
    assert approximate_gcd(values, smallest) == chunk


def test_the_pattern_that_repeats_sets_the_size_of_the_other_groups() -> None:
    """Two patterns of two pages beside five windows: groups of two windows, dealt out."""
    groups = packed_groups([LATENT, INDEX] * 2 + [WINDOW] * 5)
    assert groups == [[0, 1, 2, 3], [4, 7], [5, 8], [6]]


def test_patterns_are_dealt_out_whole() -> None:
    """Four windows of two page sizes make two patterns beside one of latent pages."""
    wide = replace(WINDOW, state_bytes=300)
    groups = packed_groups([LATENT, INDEX, WINDOW, wide, WINDOW, wide])
    assert groups == [[0, 1], [2, 3, 4, 5]]
    more = packed_groups([LATENT, INDEX] * 2 + [WINDOW, wide] * 4)
    assert more == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11]]
    uneven = packed_groups(
        [LATENT, INDEX] * 4 + [WINDOW, wide] * 4 + [replace(WINDOW, window=8)] * 7
    )
    assert uneven == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [8, 9, 10, 11, 12, 13, 14, 15],
        [16, 18, 20, 22],
        [17, 19, 21],
    ]


def test_pages_without_a_pattern_stay_in_one_group() -> None:
    """Three small windows and a wide one do not repeat, whatever the latent pages do."""
    wide = replace(WINDOW, state_bytes=300)
    groups = packed_groups([LATENT, INDEX] * 2 + [WINDOW, WINDOW, WINDOW, wide])
    assert groups == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_without_a_pattern_windows_are_split_to_fit_the_widest_group() -> None:
    """61,440 bytes of full pages hold two windows of 25,600 and nine of 6,400."""
    full = [LATENT, LATENT, INDEX]
    assert sum(spec.page_size_bytes for spec in full) == 61_440
    large = replace(WINDOW, block_size=256)
    assert packed_groups(full + [large] * 5) == [[0, 1, 2], [3, 6], [4, 7], [5]]
    assert packed_groups(full + [large] * 2) == [[0, 1, 2], [3, 4]]
    assert packed_groups(full + [WINDOW] * 9) == [[0, 1, 2], list(range(3, 12))]
    assert packed_groups(full + [WINDOW] * 10) == [
        [0, 1, 2],
        [3, 5, 7, 9, 11],
        [4, 6, 8, 10, 12],
    ]
    assert packed_groups([WINDOW] * 2) == [[0], [1]]


def test_layers_of_one_type_share_block_and_window() -> None:
    """Full pages by their block alone, windows by block and window."""
    other = replace(WINDOW, window=64)
    coarse = replace(LATENT, block_size=512)
    assert packed_groups([LATENT, INDEX, WINDOW, other, coarse]) == [[0, 1], [2], [3], [4]]


def test_pages_of_windows_are_padded_up_to_one_release() -> None:
    """Tuples pad a window's page to the next of the latent pages; the overlay leaves it."""
    rules = GroupingRules(
        tolerance=1.5,
        deals_layers_out=True,
        uniform_type_groups=True,
        unifies_page_sizes=True,
        pads_attention_pages=True,
        packs_mixed_pages=True,
        packed_planner="tuples",
        hybrid_manager=True,
    )
    layers = [LATENT, INDEX, WINDOW, WINDOW]
    pages = {
        planner: form_groups(layers, replace(rules, packed_planner=planner))[1].first
        for planner in ("tuples", "slots", "overlay", "types")
    }
    assert {planner: spec.page_size_bytes for planner, spec in pages.items()} == {
        "tuples": 256 * 40,
        "slots": 256 * 40,
        "overlay": 6400,
        "types": 6400,
    }


def test_tuples_keep_the_order_of_their_layers() -> None:
    """Windows of two sizes fall into the pages above them, and are dealt out in pairs."""
    wide = replace(WINDOW, state_bytes=300)
    groups = tuple_groups([LATENT, INDEX, WINDOW, wide, WINDOW, wide], pads_windows=True)
    assert [layers for layers, _ in groups] == [(0, 1), (2, 3), (4, 5)]
    assert [spec.page_size_bytes for spec in groups[1][1]] == [256 * 40, 256 * 100]
    alone = tuple_groups([LATENT, INDEX, WINDOW, wide, WINDOW, wide], pads_windows=False)
    assert [layers for layers, _ in alone] == [(0, 1), (2, 3), (4, 5)]
    assert [spec.page_size_bytes for spec in alone[1][1]] == [6400, 19_200]


def test_bytes_of_a_block_of_tuples_and_of_slots() -> None:
    """As many tuples as the longest group has; slots count each page size by itself."""
    short, long = [LATENT, INDEX], [replace(INDEX, window=1)] * 3
    assert tuple_bytes([short, long]) == 3 * 256 * 140
    assert tuple_bytes([short, []]) == 256 * 140
    assert tuple_bytes([[], []]) == 0
    assert slot_bytes([short, long]) == 256 * (100 + 3 * 40)
    assert slot_bytes([short, []]) == 256 * 140
