"""The cache of one engine: shape, memory, length that fits, and what is refused."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from app.core.engine import SpeculativeConfig
from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import CacheShape, cache_for, cache_shape
from app.core.kv_spec import KvSpec
from app.core.layout import Layout
from app.core.model_spec import AttentionSpec, LayerSpec
from app.core.packed_tuples import slot_bytes, tuple_bytes, tuple_groups
from app.core.reasons import Reason, Refusal
from app.core.request import SizingRequest
from app.core.result import Cache
from app.core.units import GIB
from tests.core.memory_case import dense, request, shipped
from tests.core.oracle import gpus
from tests.core.starts import asked


def shape(request: SizingRequest) -> CacheShape:
    """Work out the shape of the cache."""
    return cache_shape(request, resolve_engine_args(request))


def cache(request: SizingRequest, *gib: float) -> Cache:
    """Work out the cache for so many GiB on each stage."""
    return cache_for(request, resolve_engine_args(request), [int(each * GIB) for each in gib])


def refusal(request: SizingRequest, *gib: float) -> Reason:
    """Return why vLLM would refuse."""
    with pytest.raises(Refusal) as refused:
        cache(request, *gib)
    return refused.value.reason


def test_a_token_of_full_attention_costs_its_heads_in_every_layer() -> None:
    """Llama-3.1 8B: 32 layers, 8 heads of 128, keys and values in 16 bit."""
    assert shape(asked()).bytes_per_token == 32 * 8 * 2 * 128 * 2
    assert shape(asked(kv_cache_dtype="fp8")).bytes_per_token == 32 * 8 * 2 * 128
    quarter = shape(asked(layout=Layout(tensor_parallel_size=4)))
    assert quarter.bytes_per_token == 32 * 2 * 2 * 128 * 2


def test_only_full_attention_grows_with_the_request() -> None:
    """Ten of Gemma-3's 62 layers cost more for a longer request."""
    found = shape(asked("gemma-3-27b-text"))
    assert found.bytes_per_token == 10 * 16 * 2 * 128 * 2
    assert found.bytes_per_block == found.bytes_per_block_by_stage[0]


def test_the_tightest_stage_decides() -> None:
    """Stages with different memory: the fewest blocks count."""
    pipeline = asked(layout=Layout(pipeline_parallel_size=2), max_model_len=4096)
    assert cache(pipeline, 8, 4).num_gpu_blocks == cache(pipeline, 4, 4).num_gpu_blocks
    assert cache(pipeline, 8, 8).num_gpu_blocks == 2 * cache(pipeline, 4, 4).num_gpu_blocks


def test_what_does_not_fit_is_refused_with_the_length_that_would() -> None:
    """4 GiB hold 32,768 tokens of Llama-3.1 8B; one block is kept back."""
    reason = refusal(asked(max_model_len=40_000), 4)
    assert reason.code == "kv_cache_too_small"
    assert reason.estimated_max_model_len == 32_768 - 16
    assert cache(asked(max_model_len=32_768 - 16), 4).max_concurrency > 1
    assert refusal(asked(max_model_len=32_768 - 15), 4).code == "kv_cache_too_small"
    before = asked(max_model_len=32_768, version="0.28.0")
    assert cache(before, 4).max_concurrency == 1.0


def test_up_to_020_tokens_are_the_slots_of_all_blocks() -> None:
    """0.8.5: 8 GiB are 4,096 blocks of 16 tokens; concurrency is what they are of one request."""
    found = cache(asked(version="0.8.5", max_model_len=1000), 8)
    assert (found.num_gpu_blocks, found.kv_cache_size_tokens) == (4096, 65_536)
    assert found.max_concurrency == 65.536
    later = cache(asked(max_model_len=1000), 8)
    assert (later.max_concurrency, later.kv_cache_size_tokens) == (4096 / 63, 65_015)


def test_a_byte_is_memory_and_none_is_not() -> None:
    """One byte is too small a cache, which names what is needed; nothing is another refusal."""
    start = asked(max_model_len=1000, version="0.28.0")
    resolved = resolve_engine_args(start)
    codes = {}
    for left in (0, 1):
        with pytest.raises(Refusal) as refused:
            cache_for(start, resolved, [left])
        codes[left] = refused.value.reason
    assert codes[0].code == "no_memory_for_kv_cache"
    assert dict(codes[0].numbers) == {"available_bytes": 0, "max_model_len": 1000}
    assert codes[1].code == "kv_cache_too_small"
    assert dict(codes[1].numbers) == {
        "max_model_len": 1000,
        "needed_bytes": 63 * 2**21,
        "available_bytes": 1,
        "needed_gib": 0.12,
        "available_gib": 0.0,
        "estimate": "",
        "estimated_max_model_len": 0,
    }


def test_memory_is_given_for_every_stage() -> None:
    """One amount for two stages is a mistake of the caller, and is not taken for both."""
    pipeline = asked(layout=Layout(pipeline_parallel_size=2))
    with pytest.raises(ValueError, match="zip"):
        cache(pipeline, 8)


def test_nothing_left_is_another_refusal() -> None:
    """No memory at all is told before any length."""
    assert refusal(asked(), 0).code == "no_memory_for_kv_cache"
    assert refusal(asked(max_model_len=-1), 0).code == "kv_cache_too_small"


def test_auto_shortens_the_length_until_it_fits() -> None:
    """The longest length of which one request fits, and no longer than the model's."""
    found = cache(asked(max_model_len=-1), 4)
    assert found.max_model_len == 32_768 - 16
    assert cache(asked(max_model_len=-1), 60).max_model_len == 131_072


def test_blocks_given_by_hand_replace_the_memory() -> None:
    """Up to 0.20.0 the start check still looked at the memory."""
    given: dict[str, Any] = {"num_gpu_blocks_override": 3000, "max_model_len": 40_000}
    assert cache(asked(**given), 4).num_gpu_blocks == 3000
    early = asked(version="0.20.0", **given)
    assert refusal(early, 4).code == "kv_cache_too_small"


def test_a_model_without_cache_is_refused() -> None:
    """Nothing to lay out: no layer keeps anything."""
    empty = asked()
    bare = replace(empty, model=replace(empty.model, layers=()))
    reason = refusal(bare, 4)
    assert reason.code == "refused_by_vllm"
    assert reason.vllm_error == empty.release.error("no_cache")
    assert reason.numbers == ()


def test_a_card_that_is_not_nvidias_gets_the_default_blocks() -> None:
    """No backend is looked up where the compute capability is unknown."""
    plain = asked()
    other = replace(plain, gpu=replace(plain.gpu, compute_capability=None))
    assert shape(other).block_size == 16
    sparse = asked("deepseek-v3.2", layout=Layout(tensor_parallel_size=8))
    assert shape(replace(sparse, gpu=other.gpu)).block_size == 64


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            asked("deepseek-v3", "a100-sxm4-80gb", kv_cache_dtype="fp8"),
            "FP8 KV cache is not supported by the Triton MLA backend on NVIDIA A100",
        ),
        (asked(kv_cache_dtype="fp8_ds_mla"), "No valid attention backend found for cuda with"),
        (
            asked("llama-4-scout", kv_cache_dtype="turboquant_k8v4"),
            "Unknown TurboQuant cache dtype: 'auto'",
        ),
        (
            asked("deepseek-v4-flash", disable_hybrid_kv_cache_manager=True),
            "unexpected keyword argument 'bounded_replay'",
        ),
        (asked("deepseek-v4-flash", block_size=64), "integer division or modulo by zero"),
        (asked("deepseek-v4-flash", version="0.29.0"), "only supports fp8 kv-cache, got auto"),
        (
            asked("qwen3-next-80b-a3b", disable_hybrid_kv_cache_manager=True),
            "Failed to promote local KV cache specs to one unified type.",
        ),
        (
            asked(
                "mistral-7b-v0.1",
                layout=Layout(tensor_parallel_size=16, decode_context_parallel_size=2),
            ),
            "DCP not support sliding window.",
        ),
        (
            asked(
                "qwen3-next-80b-a3b",
                version="0.25.1",
                layout=Layout(tensor_parallel_size=8, decode_context_parallel_size=2),
            ),
            "DCP not support hybrid attn now.",
        ),
    ],
)
def test_caches_that_no_kernel_reads_are_refused_in_vllms_words(
    request_: SizingRequest, text: str
) -> None:
    """Dtypes, layouts and blocks that a model's backends cannot serve."""
    assert text in refusal(request_, 40).vllm_error


def test_cards_that_differ_in_name_alone_share_a_grouping_and_not_a_refusal() -> None:
    """Two kinds of V100 give the same object; the refusal of FP8 names each by its own name."""
    cards = ("v100-pcie-32gb", "v100-sxm2-32gb")
    first, second = (shape(asked("apertus-8b", card)).grouping for card in cards)
    assert first is second
    for card in cards:
        numbers = dict(refusal(asked("apertus-8b", card, kv_cache_dtype="fp8"), 10).numbers)
        assert numbers["gpu_name"] == gpus()[card].name


def test_a_stage_without_a_cache_is_not_asked_for_memory() -> None:
    """Two stages, the layers of the second keep nothing: only the first has to hold a request."""
    full = dense().layers[:1]
    model = dense(layers=(*full * 2, LayerSpec(None), LayerSpec(None)))
    start = replace(request(model=model), layout=Layout(pipeline_parallel_size=2))
    found = cache(start, 1, 0)
    assert found.num_gpu_blocks == cache(start, 1, 1).num_gpu_blocks
    assert refusal(start, 0, 1).code == "no_memory_for_kv_cache"


LATENT = KvSpec("mla", 256, 100)
INDEX = KvSpec("mla", 256, 40)
SMALL_WINDOW = KvSpec("sliding_window_mla", 64, 100, window=128)


def test_tuples_hold_one_page_of_each_size() -> None:
    """Windows are split into groups of as many tuples and padded to the pages of the tuple."""
    groups = tuple_groups([LATENT, INDEX] * 2 + [SMALL_WINDOW] * 5, pads_windows=True)
    assert [len(layers) for layers, _ in groups] == [4, 2, 2, 1]
    specs = [own for _, own in groups]
    assert {spec.page_size_bytes for spec in specs[1]} == {256 * 40}
    assert tuple_bytes(specs) == 2 * (256 * 100 + 256 * 40)
    assert slot_bytes(specs) == tuple_bytes(specs)
    bare = tuple_groups([LATENT, INDEX] * 2 + [SMALL_WINDOW] * 5, pads_windows=False)
    assert {spec.page_size_bytes for spec in bare[1][1]} == {64 * 100}


def test_deepseek_v4_is_packed_tighter_release_by_release() -> None:
    """Bytes of a block of DeepSeek-V4 Flash: tuples, slots, overlays."""
    found = {
        version: shape(
            asked(
                "deepseek-v4-flash",
                version=version,
                kv_cache_dtype="fp8",
                layout=Layout(tensor_parallel_size=8),
            )
        ).bytes_per_block
        for version in ("0.20.0", "0.23.0", "0.27.0", "0.29.0")
    }
    assert found == {
        "0.20.0": 1_051_776,
        "0.23.0": 1_039_680,
        "0.27.0": 1_002_240,
        "0.29.0": 1_002_240,
    }


@pytest.mark.parametrize(
    ("version", "card", "cache_dtype", "block"),
    [
        # 61 layers of 64 latent vectors of 1,152 bytes and 64 index keys of 132.
        ("0.30.0", "b200", "auto", 61 * 64 * (1152 + 132)),
        ("0.31.0", "h100-80gb-hbm3", "auto", 61 * 64 * (1152 + 132)),
        # 4,351.3 and 4,798.7 rows, rounded up.
        ("0.31.0", "b200", "auto", 4352 * 1152),
        ("0.31.0", "b200", "fp8", 4799 * 576),
        # FlashMLA packs 656 bytes, and reads them flat on Blackwell alone.
        ("0.31.0", "h100-80gb-hbm3", "fp8", 61 * 64 * (656 + 132)),
        ("0.32.0", "b200", "auto", 61 * 64 * (1152 + 132)),
    ],
)
def test_a_block_is_whole_rows_where_a_backend_reads_it_flat(
    version: str, card: str, cache_dtype: str, block: int
) -> None:
    """DeepSeek-V3.2 in 0.31.0: FlashInfer's sparse kernel reads rows of one latent vector."""
    layout = Layout(tensor_parallel_size=8)
    found = shape(asked("deepseek-v3.2", card, version, layout, kv_cache_dtype=cache_dtype))
    assert found.bytes_per_block == block


def test_older_releases_check_layer_by_layer() -> None:
    """0.11.2: two full layers take 625 blocks each for 10,000 tokens, two windows 521."""
    full = AttentionSpec("full_attention", 8, 128, 128)
    window = replace(full, kind="sliding_window", window=128)
    layers = (*(LayerSpec(full),) * 2, *(LayerSpec(window),) * 2)
    whole = request(model=dense(layers=layers), max_model_len=10_000, release=shipped("0.11.2"))
    page = 16 * 8 * 2 * 128 * 2
    halves = replace(whole, layout=Layout(pipeline_parallel_size=2))
    byte = 1 / GIB
    # 127 tokens of the window and 8,192 in flight: 520 blocks, and one it may begin inside of.
    for start, gib, blocks in (
        (whole, (byte,), 2 * 625 + 2 * 521),
        (halves, (byte, 1), 2 * 625),
        (halves, (1, byte), 2 * 521),
    ):
        assert dict(refusal(start, *gib).numbers)["needed_bytes"] == page * blocks


def test_index_keys_share_the_blocks_of_their_layer() -> None:
    """MiniMax-M3: blocks of 128 tokens, 4,096 bytes of keys and values and 256 of index keys."""
    sparse = AttentionSpec("full_attention", 8, 128, 128, index_head_dim=128)
    found = shape(request(model=dense(layers=(LayerSpec(sparse),) * 4)))
    assert found.block_size == 128
    assert found.bytes_per_block == 4 * 128 * (4096 + 256)
    assert found.grouping.backends == ("MINIMAX_M3_SPARSE",)


@pytest.mark.parametrize(
    ("version", "cache_dtype", "latent"),
    [
        ("0.11.0", "auto", 656),
        ("0.15.1", "fp8", 656),
        ("0.15.1", "auto", 1152),
    ],
)
def test_sparse_latent_vectors_were_packed_by_default(
    version: str, cache_dtype: str, latent: int
) -> None:
    """DeepSeek-V3.2 in 0.11.0 whatever is asked for, then up to 0.17.1 for every FP8 kind."""
    layout = Layout(tensor_parallel_size=8)
    start = asked("deepseek-v3.2", version=version, layout=layout, kv_cache_dtype=cache_dtype)
    assert shape(start).bytes_per_block == 61 * 64 * (latent + 132)


def test_refusals_of_context_parallelism_have_a_code_of_their_own() -> None:
    """Two groups are enough for a hybrid to be refused; windows are, whatever else there is."""
    layout = Layout(tensor_parallel_size=8, decode_context_parallel_size=2)
    hybrid = asked("qwen3-next-80b-a3b", version="0.25.1", layout=layout)
    assert refusal(hybrid, 40).code == "dcp_not_supported"
    layers = (*dense().layers, LayerSpec(AttentionSpec("sliding_window", 2, 128, 128, window=64)))
    model = dense(layers=layers, num_attention_heads=16, num_key_value_heads=2)
    windows = request(model=model, layout=layout, release=shipped("0.33.0"))
    assert refusal(windows, 40).code == "dcp_not_supported"


@pytest.mark.parametrize(("layers", "packed"), [(3, 1), (4, 0), (5, 1), (6, 2)])
def test_packed_dtypes_leave_the_outer_layers_as_they_are(layers: int, packed: int) -> None:
    """TurboQuant keeps two layers at either end in 16 bit, of three layers one at either end."""
    start = request(
        model=dense(layers=dense().layers[:1] * layers),
        kv_cache_dtype="turboquant_k8v4",
        release=shipped("0.33.0"),
    )
    kinds = Counter(
        spec.state_bytes for group in shape(start).grouping.groups for spec in group.specs
    )
    assert kinds[8 * 196] == packed
    assert kinds[8 * 512] == layers - packed


def test_a_draft_without_layers_of_its_own_is_like_the_last_one() -> None:
    """EAGLE beside a window and full attention: one more layer of full attention."""
    full = LayerSpec(AttentionSpec("full_attention", 8, 128, 128))
    window = LayerSpec(AttentionSpec("sliding_window", 8, 128, 128, window=64))
    start = request(model=dense(layers=(window, full)))
    drafts = start.engine_args.with_flag("speculative_config", SpeculativeConfig("eagle3", 2))
    kinds = Counter(
        spec.kind
        for group in shape(replace(start, engine_args=drafts)).grouping.groups
        for spec in group.specs
    )
    assert kinds == {"sliding_window": 1, "full_attention": 2}


@pytest.mark.parametrize("version", ["0.11.1", "0.27.1"])
def test_states_of_every_block_need_blocks(version: str) -> None:
    """A model of states alone keeps one for every 16 tokens where a release caches prefixes so.

    Source: `MambaModelConfig.verify_and_update_config` of vllm/model_executor/models/config.py:
    with prefix caching `mamba_block_size` is `block_size`, in both modes.
    """
    start = asked("falcon-mamba-7b", version=version, max_model_len=100, enable_prefix_caching=True)
    [group] = shape(start).groups
    assert (group.block_size, group.blocks_per_request) == (16, 7)
