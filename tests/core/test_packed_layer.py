"""The caches of one DeepSeek-V4 layer: 584 bytes a state, pages in rows of 576 bytes."""

from dataclasses import replace

import pytest

from app.core.kv_spec import KvSpec, RequestLength
from app.core.model_spec import PackedSpec
from app.core.packed_layer import kernel_pages_bytes, packed_cache_dtype, packed_specs
from app.core.reasons import Refusal
from tests.core.test_layer_cache import context

FINE = PackedSpec(compress_ratio=4, window=128, head_size=512, index_head_dim=128)
COARSE = PackedSpec(compress_ratio=128, window=128, head_size=512)
WINDOW = KvSpec("sliding_window_mla", 64, 584, window=128, padded_page_bytes=65 * 576)


def test_a_layer_without_compression_keeps_its_window() -> None:
    """64 states of 584 bytes fill 64.9 rows, so 65 are taken."""
    for ratio in (0, 1):
        assert packed_specs(replace(COARSE, compress_ratio=ratio), context(), 256) == (WINDOW,)


def test_a_fine_layer_has_an_indexer_and_two_compressors() -> None:
    """Four tokens a state: 64 index keys of 132 bytes, 64 states, float32 of two windows each."""
    assert packed_specs(FINE, context(), 256) == (
        WINDOW,
        KvSpec("mla", 256, 132, 4, padded_page_bytes=15 * 576, identity=("index",)),
        KvSpec("sliding_window_mla", 4, 2048, window=8, padded_page_bytes=15 * 576),
        KvSpec("mla", 256, 584, 4, padded_page_bytes=65 * 576),
        KvSpec("sliding_window_mla", 4, 8192, window=8, padded_page_bytes=57 * 576),
    )


def test_a_coarse_layer_compresses_128_tokens_without_overlap() -> None:
    """Two states in a block of 256 tokens, float32 keys and scores of one window of 128."""
    assert packed_specs(COARSE, context(), 256) == (
        WINDOW,
        KvSpec("mla", 256, 584, 128, padded_page_bytes=3 * 576),
        KvSpec("sliding_window_mla", 8, 4096, window=128, padded_page_bytes=57 * 576),
    )
    other = packed_specs(replace(COARSE, compress_ratio=2), context(), 256)
    assert (other[2].block_size, other[2].window) == (8, 2)


def test_a_block_smaller_than_a_state_is_refused() -> None:
    """64 tokens hold no whole state of 128."""
    with pytest.raises(Refusal) as refused:
        packed_specs(COARSE, context(), 64)
    assert refused.value.reason.numbers == (("block_size", 64),)
    assert len(packed_specs(COARSE, context(), 128)) == 3


def test_every_fp8_kind_is_stored_as_packed_rows() -> None:
    """`auto` too from 0.30.0 on, and nothing else."""
    assert {packed_cache_dtype(context(), dtype) for dtype in ("auto", "fp8", "fp8_e4m3")} == {
        "fp8_ds_mla"
    }
    for version, dtype in (("0.29.0", "auto"), ("0.33.0", "bfloat16")):
        with pytest.raises(Refusal) as refused:
            packed_cache_dtype(context(version), dtype)
        assert refused.value.reason.numbers == (("kv_cache_dtype", dtype),)


def test_larger_blocks_hold_whole_pages_of_the_kernels() -> None:
    """Kernels read 256 tokens: 15, 65 and 3 rows; a block of 512 is a multiple of all three."""
    rows = 3 * 5 * 13  # the least common multiple of 15, 65 and 3
    layers = [*packed_specs(FINE, context(), 512), *packed_specs(COARSE, context(), 512)]
    assert kernel_pages_bytes(layers) == rows * 576
    assert kernel_pages_bytes(packed_specs(COARSE, context(), 512)) == 3 * 576
    assert kernel_pages_bytes(packed_specs(FINE, context(), 256)) == 1
    one_state = packed_specs(replace(COARSE, compress_ratio=512), context(), 512)
    assert kernel_pages_bytes(one_state) == 2 * 576


def test_without_the_hybrid_manager_a_window_keeps_every_token() -> None:
    """A padded page grows to what a block of all tokens takes, and never shrinks."""
    length = RequestLength(10_000, 2048)
    promoted = WINDOW.as_full_attention(256)
    assert promoted.kind == "mla"
    assert promoted.page_size_bytes == 256 * 584
    assert promoted.blocks_per_request(length) == 40
    assert WINDOW.as_full_attention(16).page_size_bytes == 65 * 576
    plain = KvSpec("sliding_window", 16, 100, window=128, retained_tokens=3)
    assert plain.as_full_attention(32) == KvSpec("full_attention", 32, 100, window=128)
