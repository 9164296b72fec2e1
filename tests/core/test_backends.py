"""Which attention backend serves a layer on a card, and what vLLM says where none does."""

from dataclasses import replace

import pytest

from app.core.attention_layer import AttentionLayer
from app.core.backend_rules import flash_attention_version, objections
from app.core.backends import BackendBook
from app.core.block_size import (
    HybridNeeds,
    common_block_size,
    hybrid_block_size,
    mixed_dtype_block_size,
)
from tests.core.oracle import releases

LAYER = AttentionLayer((9, 0), 128, "bfloat16", "auto", None)
MLA = replace(
    LAYER, head_size=576, use_mla=True, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64
)
HOPPER, BLACKWELL, CONSUMER, ADA, AMPERE = (9, 0), (10, 0), (12, 0), (8, 9), (8, 0)


def book(version: str = "0.33.0") -> BackendBook:
    """Return the backends of a release."""
    found = releases().release_for(version)[0].backends
    assert found is not None
    return found


def chosen(layer: AttentionLayer, version: str = "0.33.0") -> str | None:
    """Name the backend that serves a layer."""
    backend = book(version).select(layer)
    return None if backend is None else backend.name


@pytest.mark.parametrize(
    ("capability", "dtype", "name"),
    [
        (HOPPER, "auto", "FLASH_ATTN"),
        (HOPPER, "fp8", "FLASH_ATTN"),
        (HOPPER, "fp8_e5m2", "FLASHINFER"),
        (BLACKWELL, "auto", "FLASHINFER"),
        (BLACKWELL, "nvfp4", "FLASHINFER"),
        (ADA, "fp8", "FLASHINFER"),
        (AMPERE, "auto", "FLASH_ATTN"),
        (CONSUMER, "int8_per_token_head", "TRITON_ATTN"),
        (HOPPER, "turboquant_k8v4", "TURBOQUANT"),
        (HOPPER, "fp8_ds_mla", None),
    ],
)
def test_card_and_dtype_choose_the_backend(
    capability: tuple[int, int], dtype: str, name: str | None
) -> None:
    """The first backend of the card's order that reads the dtype."""
    assert chosen(replace(LAYER, capability=capability, kv_cache_dtype=dtype)) == name


@pytest.mark.parametrize(
    ("capability", "sparse", "heads", "name"),
    [
        (HOPPER, False, 128, "FLASH_ATTN_MLA"),
        (BLACKWELL, False, 128, "FLASHINFER_MLA"),
        (CONSUMER, False, 128, "TRITON_MLA"),
        (AMPERE, False, 128, "TRITON_MLA"),
        (HOPPER, True, 128, "FLASH_ATTN_MLA_SPARSE"),
        (BLACKWELL, True, 128, "FLASHMLA_SPARSE"),
        (BLACKWELL, True, 16, "FLASHINFER_MLA_SPARSE"),
        (CONSUMER, True, 128, "FLASHINFER_MLA_SPARSE_SM120"),
        (ADA, True, 128, None),
    ],
)
def test_latent_attention_has_backends_of_its_own(
    capability: tuple[int, int], *, sparse: bool, heads: int, name: str | None
) -> None:
    """Sparse MLA needs Hopper or newer; few heads on a rank prefer another kernel."""
    layer = replace(
        MLA, capability=capability, use_sparse=sparse, has_index_topk=sparse, num_heads=heads
    )
    assert chosen(layer) == name


def test_backends_came_and_changed_with_releases() -> None:
    """NVFP4 beyond SM100 from 0.32.0, sinks of FlashInfer on Hopper from 0.30.0."""
    nvfp4 = replace(LAYER, kv_cache_dtype="nvfp4", nvfp4_beyond_sm100=False)
    assert chosen(nvfp4, "0.31.0") is None
    assert chosen(replace(nvfp4, nvfp4_beyond_sm100=True), "0.32.0") == "FLASHINFER"
    sinks = replace(LAYER, has_sink=True, kv_cache_dtype="fp8_e5m2")
    assert chosen(sinks, "0.29.0") == "TRITON_ATTN"
    assert chosen(sinks, "0.30.0") == "FLASHINFER"
    on_blackwell = replace(MLA, capability=BLACKWELL)
    assert chosen(on_blackwell, "0.14.0") == "CUTLASS_MLA"
    assert chosen(on_blackwell, "0.15.0") == "FLASHINFER_MLA"


def test_a_given_block_size_must_fit_the_kernel() -> None:
    """Blocks of 24 tokens fit no kernel of 16."""
    assert chosen(replace(LAYER, block_size=24)) is None
    assert chosen(replace(LAYER, block_size=48)) == "FLASH_ATTN"


def test_every_objection_is_written_down_in_vllms_order() -> None:
    """The text lists the backends that were tried with what speaks against each."""
    text = book().all_reasons(replace(LAYER, kv_cache_dtype="fp8_ds_mla", use_mm_prefix=True))
    assert text.startswith("{TRITON_FLASH_ATTN: [head_size not supported, kv_cache_dtype not supp")
    assert "FLEX_ATTENTION: [kv_cache_dtype not supported]" in text
    flash = book().named("FLASH_ATTN")
    assert flash is not None
    assert objections(flash, LAYER) == []
    assert objections(flash, replace(MLA, has_sink=True, capability=AMPERE)) == [
        "head_size",
        "mla",
        "sinks",
        "flash_attention_sinks",
    ]


@pytest.mark.parametrize(
    ("capability", "head_size", "version"),
    [(HOPPER, 128, 3), (HOPPER, 512, 4), (BLACKWELL, 128, 4), (BLACKWELL, 256, 2), (ADA, 128, 2)],
)
def test_flash_attention_follows_card_and_head(
    capability: tuple[int, int], head_size: int, version: int
) -> None:
    """Version 3 on Hopper, 4 on Blackwell, 2 elsewhere and for heads too large."""
    layer = replace(LAYER, capability=capability, head_size=head_size)
    assert flash_attention_version(layer) == version


def test_block_sizes_satisfy_every_backend() -> None:
    """16 where it can be, else the smallest that all take."""
    assert common_block_size([(16,), (16, 32)]) == 16
    assert common_block_size([(32, 64)]) == 32
    assert common_block_size([(64,), (16,)]) == 64
    assert common_block_size([(32, 64), (128,)]) == 128


def test_hybrid_blocks_hold_a_whole_state() -> None:
    """A state of 10,000 bytes beside 8 bytes a token: 1,250 tokens, rounded up to the step."""
    needs = HybridNeeds(10_000, 8, 1, 0)
    assert hybrid_block_size(16, [(16,)], needs, 0, 0) == (1264, 1264)
    assert hybrid_block_size(16, [(16,)], needs, 0, 128) == (1280, 1280)
    assert hybrid_block_size(16, [(16,)], needs, 32, 0) == (1280, 1280)
    assert hybrid_block_size(4096, [(16,)], needs, 16, 0) == (4096, 1264)
    chunked = replace(needs, chunk_size=256)
    assert hybrid_block_size(16, [(16,)], chunked, 0, 0) == (1280, 1280)
    aligned = replace(needs, checkpoint_alignment=64)
    assert hybrid_block_size(16, [(16,)], aligned, 0, 0) == (1280, 1280)


def test_packed_layers_get_blocks_that_hold_an_unquantised_page() -> None:
    """A page of quarter size needs blocks four times as long."""
    assert mixed_dtype_block_size(16, (16,), 1) == 16
    assert mixed_dtype_block_size(16, (16,), 4) == 64
    assert mixed_dtype_block_size(48, (32,), 2) == 96
    assert mixed_dtype_block_size(16, (64,), 2) == 128
