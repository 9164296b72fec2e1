"""Block sizes of hybrids by hand: one attention page holds a whole state."""

from dataclasses import replace

import pytest

from app.core.attention_layer import AttentionBackend
from app.core.block_agreement import BlockSizes, PlannedCache, agree_on_blocks
from app.core.block_size import HybridNeeds, hybrid_block_size
from app.core.layer_cache import CacheContext
from app.core.model_spec import AttentionSpec, CacheSpec, MlaSpec, StateSpec
from tests.core.test_layer_cache import GDN, SHORT, context

# 1,097,728 bytes of state, 4,096 bytes of keys and values a token: 268 tokens.
STATE = 3 * 8192 * 2 + 32 * 128 * 128 * 2
NARROW = AttentionSpec("full_attention", 8, 128, 128)
WIDE = AttentionSpec("full_attention", 4, 256, 256)
LATENT = MlaSpec(512, 64)


def agreed(
    asked: CacheContext,
    attention: CacheSpec,
    kernel: tuple[int, ...] = (16,),
    states: tuple[StateSpec, ...] = (GDN,),
) -> BlockSizes:
    """Agree on the blocks of one attention layer beside recurrent ones."""
    backend = AttentionBackend("KERNEL", frozenset(), kernel)
    caches = [PlannedCache(state, 0, "auto", None) for state in states]
    caches.append(PlannedCache(attention, 0, "auto", backend))
    return agree_on_blocks(asked, tuple(caches), [backend])


@pytest.mark.parametrize(
    ("version", "capability", "attention", "block"),
    [
        # 268 tokens in steps of 16 are 272, in steps of 32 they are 288.
        ("0.11.1", (9, 0), WIDE, 272),
        ("0.11.1", (10, 0), NARROW, 272),
        ("0.11.1", (10, 0), WIDE, 288),
        ("0.11.1", None, WIDE, 272),
        ("0.18.0", (10, 0), WIDE, 272),
        # 953 tokens of 1,152 bytes in steps of 64 are 960.
        ("0.11.1", (9, 0), LATENT, 960),
    ],
)
def test_older_releases_have_a_step_of_their_own(
    version: str, capability: tuple[int, int] | None, attention: CacheSpec, block: int
) -> None:
    """Whatever the kernels take: 16, 32 for heads of 256 on Blackwell, 64 for latent vectors."""
    per_token = 1152 if attention is LATENT else 4096
    found = agreed(context(version, capability=capability), attention, kernel=(128,))
    assert found == BlockSizes(block, 0, block * per_token)


@pytest.mark.parametrize(
    ("version", "attention", "kernel", "block"),
    [
        ("0.20.0", WIDE, (16,), 272),
        ("0.20.0", WIDE, (64,), 320),
        ("0.20.0", LATENT, (64,), 960),
        ("0.27.0", LATENT, (64,), 1024),
        ("0.27.0", WIDE, (64,), 320),
    ],
)
def test_later_the_kernels_decide(
    version: str, attention: CacheSpec, kernel: tuple[int, ...], block: int
) -> None:
    """Steps are those of the kernel, of at least 128 tokens for latent vectors from 0.27.0."""
    assert agreed(context(version), attention, kernel).attention == block


def test_a_state_lies_at_the_end_of_a_block_where_prefixes_are_cached() -> None:
    """`align`: the block of attention. `all`: the step itself, in chunks of 2,048 tokens."""
    found = {
        mode: agreed(context("0.11.1", mamba_cache_mode=mode, user_block_size=4096), WIDE)
        for mode in ("none", "align", "all")
    }
    assert found["none"] == BlockSizes(4096, 0, 4096 * 4096)
    assert found["align"] == BlockSizes(4096, 4096, 4096 * 4096)
    assert found["all"] == BlockSizes(4096, 2048, 4096 * 4096)


def test_checkpoints_inside_a_prefill_lie_on_a_grid_of_64() -> None:
    """0.33.0 with `align`: 272 tokens become 320, unless one kind of state keeps no checkpoint."""
    assert agreed(context(mamba_cache_mode="align"), WIDE).attention == 320
    assert agreed(context(mamba_cache_mode="none"), WIDE).attention == 272
    assert agreed(context("0.32.0", mamba_cache_mode="align"), WIDE).attention == 272
    mixed = (GDN, SHORT)
    assert agreed(context(mamba_cache_mode="align"), WIDE, states=mixed).attention == 272


def test_states_alone_keep_the_default_block() -> None:
    """No attention, no kernel to ask: 16 tokens or what is given."""
    caches = (PlannedCache(GDN, 0, "auto", None),)
    for asked, sizes in (
        (context(), BlockSizes(16)),
        (context(mamba_cache_mode="align"), BlockSizes(16, 16)),
        (context(mamba_cache_mode="align", user_block_size=32), BlockSizes(32, 32)),
    ):
        assert agree_on_blocks(asked, caches, []) == sizes


def test_steps_by_hand() -> None:
    """The largest of kernel, block and least; a grid and chunks are kept to as well."""
    needs = HybridNeeds(10_000, 8, 1, 0)
    assert hybrid_block_size(16, [(64,)], needs, 0, 0) == (1280, 1280)
    assert hybrid_block_size(16, [(16,), (96,)], needs, 0, 0) == (1344, 1344)
    assert hybrid_block_size(16, [(16,), (96,)], needs, 16, 0) == (1264, 1264)
    assert hybrid_block_size(16, [(16,)], replace(needs, chunk_size=100), 0, 0) == (1600, 1600)
