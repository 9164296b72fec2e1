"""What one layer keeps on one rank: states by hand, checkpoints, blocks of windows, index keys."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.attention_layer import AttentionBackend
from app.core.kv_spec import KvSpec
from app.core.layer_cache import (
    CacheContext,
    attention_spec,
    checkpoint_alignment,
    index_bytes,
    index_key_spec,
    latent_specs,
    state_blocks,
    state_bytes,
    state_spec,
    window_block_size,
)
from app.core.model_spec import AttentionSpec, MlaSpec, StateSpec
from tests.core.oracle import releases

MAMBA2 = StateSpec(
    "mamba2",
    conv_kernel=4,
    num_value_heads=64,
    value_head_dim=64,
    key_head_dim=128,
    num_groups=8,
    conv_dim=4096,
)
GDN = StateSpec(
    "gated_delta_net",
    conv_kernel=4,
    num_value_heads=32,
    value_head_dim=128,
    num_key_heads=16,
    key_head_dim=128,
)
KDA = replace(GDN, kind="kda", num_key_heads=32, ssm_dtype="float32", bounded_gate=True)
MAMBA1 = StateSpec("mamba1", conv_kernel=4, key_head_dim=16, conv_dim=8192)
SHORT = StateSpec("short_conv", conv_kernel=3, conv_dim=2048)
LINEAR = StateSpec("linear_attention", conv_kernel=0, num_value_heads=64, value_head_dim=128)
KERNEL = AttentionBackend("FLASH_ATTN", frozenset(), (16,))


def context(version: str = "0.33.0", **changes: object) -> CacheContext:
    """Return the context of one Hopper card in 16 bit."""
    values: dict[str, Any] = {
        "release": releases().release_for(version)[0],
        "capability": (9, 0),
        "gpu_name": "card",
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "decode_context_parallel_size": 1,
        "cache_dtype": "auto",
        "dtype": "bfloat16",
        "user_block_size": None,
        "hybrid_manager": True,
        "mamba_cache_mode": "none",
        "ssm_dtype": "auto",
        "num_speculative_tokens": 0,
        "draft_layers": 0,
        "mm_prefix": False,
    }
    return CacheContext(**(values | changes))


@pytest.mark.parametrize(
    ("spec", "tp", "convolution", "state"),
    [
        (MAMBA2, 1, 3 * (4096 + 2 * 8 * 128), 64 * 64 * 128),
        (MAMBA2, 2, 3 * (4096 + 2 * 8 * 128) // 2, 32 * 64 * 128),
        # A group that all ranks need is held once by each.
        (replace(MAMBA2, num_groups=1), 4, 3 * (4096 + 2 * 4 * 128) // 4, 16 * 64 * 128),
        (GDN, 1, 3 * (2 * 16 * 128 + 32 * 128), 32 * 128 * 128),
        (GDN, 4, 3 * (2 * 16 * 128 + 32 * 128) // 4, 8 * 128 * 128),
        (replace(GDN, value_head_dim=64), 1, 3 * (4096 + 2048), 32 * 64 * 128),
        (replace(GDN, conv_kernel=0), 1, 0, 32 * 128 * 128),
        (MAMBA1, 1, 3 * 8192, 8192 * 16),
        (MAMBA1, 2, 3 * 4096, 4096 * 16),
        (SHORT, 1, 2 * 2048, 0),
        (SHORT, 2, 2 * 1024, 0),
        (LINEAR, 1, 0, 64 * 128 * 128),
        (LINEAR, 8, 0, 8 * 128 * 128),
    ],
)
def test_states_by_hand(spec: StateSpec, tp: int, convolution: int, state: int) -> None:
    """A window of inputs and a matrix a head, both in 16 bit: mamba_utils.py of vLLM."""
    held = state_bytes(spec, context(tensor_parallel_size=tp))
    assert held == 2 * (convolution + state)
    assert isinstance(held, int)


def test_a_kda_layer_keeps_its_matrix_in_float32() -> None:
    """Kimi-Linear: 32 heads of 128, keys as many as values, on each of two ranks half of them."""
    channels = 3 * 32 * 128
    for tp in (1, 2):
        held = state_bytes(KDA, context(tensor_parallel_size=tp))
        assert held == (3 * channels * 2 + 32 * 128 * 128 * 4) // tp
        assert isinstance(held, int)
    other = replace(KDA, value_head_dim=64, num_key_heads=16, key_head_dim=96)
    assert state_bytes(other, context()) == 3 * (32 * 64 + 2 * 16 * 96) * 2 + 32 * 64 * 64 * 4


@pytest.mark.parametrize("spec", [MAMBA2, GDN, KDA])
def test_drafts_lengthen_the_window_of_inputs(spec: StateSpec) -> None:
    """Two draft tokens keep two more inputs of every channel; the matrix stays."""
    channels = {"mamba2": 6144, "gated_delta_net": 8192, "kda": 12288}[spec.kind]
    without, with_drafts = (
        state_bytes(spec, context(num_speculative_tokens=drafts)) for drafts in (0, 2)
    )
    assert with_drafts - without == 2 * channels * 2


def test_the_dtype_of_a_state() -> None:
    """What is given counts, then from 0.13.0 the config's, then the model's; KDA's always."""
    wanted = replace(GDN, ssm_dtype="float32")
    half, window = 32 * 128 * 128 * 2, 3 * 8192 * 2
    assert state_bytes(wanted, context("0.13.0")) == window + 2 * half
    assert state_bytes(wanted, context("0.12.0")) == window + half
    assert state_bytes(wanted, context(ssm_dtype="bfloat16")) == window + half
    assert state_bytes(GDN, context(ssm_dtype="float32")) == window + 2 * half
    assert state_bytes(GDN, context(dtype="float32")) == 2 * (window + half)
    assert state_bytes(KDA, context("0.12.0")) == 3 * 12288 * 2 + 2 * half


@pytest.mark.parametrize(
    ("spec", "version", "mode", "drafts", "blocks"),
    [
        (GDN, "0.14.0", "none", 2, 1),
        (GDN, "0.15.0", "none", 2, 3),
        (GDN, "0.32.0", "align", 0, 2),
        (GDN, "0.32.0", "align", 3, 5),
        (GDN, "0.33.0", "align", 3, 6),
        (MAMBA2, "0.31.0", "align", 0, 2),
        (MAMBA2, "0.32.0", "align", 0, 3),
        (MAMBA2, "0.33.0", "none", 0, 1),
        (MAMBA2, "0.21.0", "all", 3, 0),
        (MAMBA2, "0.22.0", "all", 3, 3),
    ],
)
def test_blocks_of_a_state(
    spec: StateSpec, version: str, mode: str, drafts: int, blocks: int
) -> None:
    """One a request, two where it is aligned, one for each draft, one for a checkpoint."""
    asked = context(version, mamba_cache_mode=mode, num_speculative_tokens=drafts)
    assert state_blocks(spec, asked) == blocks


@pytest.mark.parametrize(
    ("spec", "version", "capability", "tokens"),
    [
        (MAMBA2, "0.31.0", (9, 0), 0),
        (MAMBA2, "0.32.0", (8, 0), 1),
        (GDN, "0.32.0", (9, 0), 0),
        (GDN, "0.33.0", (9, 0), 64),
        (GDN, "0.33.0", (10, 0), 64),
        (GDN, "0.33.0", (12, 0), 64),
        (GDN, "0.33.0", (8, 9), 0),
        (GDN, "0.33.0", None, 0),
        (replace(GDN, key_head_dim=64), "0.33.0", (9, 0), 64),
        (replace(GDN, key_head_dim=64), "0.33.0", (10, 0), 0),
        (KDA, "0.28.0", (9, 0), 0),
        (KDA, "0.29.0", (9, 0), 16),
        (KDA, "0.29.0", (12, 0), 16),
        (KDA, "0.29.0", (8, 0), 0),
        (replace(KDA, value_head_dim=64), "0.29.0", (9, 0), 0),
        (replace(KDA, bounded_gate=False), "0.29.0", (9, 0), 0),
        (SHORT, "0.33.0", (9, 0), 0),
    ],
)
def test_checkpoints_inside_a_prefill(
    spec: StateSpec, version: str, capability: tuple[int, int] | None, tokens: int
) -> None:
    """Mamba-2 aligns to a token from 0.32.0; the others where a kernel of the card does."""
    assert checkpoint_alignment(spec, context(version, capability=capability)) == tokens


def test_a_state_is_one_page_whatever_the_tokens() -> None:
    """Its page is its bytes or what it is padded to, and `all` keeps one for every block."""
    found = state_spec(GDN, context(mamba_cache_mode="all"), 528, 2**21)
    assert found == KvSpec(
        "mamba",
        528,
        3 * 8192 * 2 + 32 * 128 * 128 * 2,
        tokens_per_state=0,
        padded_page_bytes=2**21,
        state_every_block=True,
        identity=("gated_delta_net", 3 * 8192 * 2 + 32 * 128 * 128 * 2),
    )
    assert not state_spec(GDN, context(), 0, None).state_every_block


def test_windows_take_the_largest_block_of_their_kernel() -> None:
    """From 0.25.0: multiples of one step, else the largest of several that fits, else the least."""
    several = AttentionBackend("FLASHINFER", frozenset(), (16, 32, 64))
    assert window_block_size(KERNEL, 528) == 528
    assert isinstance(window_block_size(KERNEL, 528), int)
    assert window_block_size(KERNEL, 530) == 528
    assert window_block_size(KERNEL, 8) == 16
    assert window_block_size(several, 528) == 64
    assert window_block_size(several, 32) == 32
    assert window_block_size(several, 48) == 32
    assert window_block_size(several, 8) == 16
    window = AttentionSpec("sliding_window", 8, 128, 128, window=1024)
    assert attention_spec(window, context("0.24.0"), several, 528, "auto").block_size == 528
    assert attention_spec(window, context("0.25.0"), several, 528, "auto").block_size == 64
    full = replace(window, kind="full_attention", window=None)
    assert attention_spec(full, context("0.25.0"), several, 528, "auto").block_size == 528


def test_attention_by_hand() -> None:
    """Heads of the rank times key and value; fewer heads than ranks are replicated."""
    spec = AttentionSpec("sliding_window", 8, 192, 128, window=1024)
    found = attention_spec(spec, context(tensor_parallel_size=2), KERNEL, 16, "fp8")
    assert found == KvSpec(
        "sliding_window", 16, 4 * (192 + 128), window=1024, identity=(4, 192 + 128)
    )
    wide = attention_spec(spec, context(tensor_parallel_size=16), KERNEL, 16, "auto")
    assert wide.state_bytes == 2 * (192 + 128)


def test_index_keys_lie_beside_the_cache_of_a_layer() -> None:
    """MiniMax-M3 keeps keys in the model's dtype; sparse MLA FP8 keys and a scale for every 128."""
    assert index_key_spec(128, context(), 64) == KvSpec("mla", 64, 256, identity=("index", 256))
    assert [index_bytes(size) for size in (64, 128, 129)] == [68, 132, 137]
    dense = MlaSpec(512, 64)
    latent = KvSpec("mla", 64, 1152, identity=("auto",))
    assert latent_specs(dense, context(), 64, "auto") == (latent,)
    sparse = MlaSpec(512, 64, index_head_dim=128, sparse=True)
    keys = KvSpec("mla", 64, 132, identity=("index",))
    assert latent_specs(sparse, context(), 64, "auto") == (keys, latent)
    packed = latent_specs(sparse, context(), 64, "fp8_ds_mla")[1]
    assert packed == KvSpec("mla", 64, 656, identity=("fp8_ds_mla",))
