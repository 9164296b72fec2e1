"""How layers become groups: buckets, tolerance, padding, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.engine_defaults import resolve_engine_args
from app.core.groups import GroupingRules, PageSizeError, PromotionError, form_groups
from app.core.kv_cache import cache_shape
from app.core.kv_spec import KvSpec, RequestLength
from app.core.model_spec import AttentionSpec, LayerSpec
from app.core.reasons import Refusal
from tests.core.memory_case import dense, request, shipped

RULES = GroupingRules(
    tolerance=1.5,
    deals_layers_out=True,
    uniform_type_groups=True,
    unifies_page_sizes=True,
    pads_attention_pages=True,
    packs_mixed_pages=False,
    packed_planner="types",
    hybrid_manager=True,
)
FULL = KvSpec("full_attention", 16, 4096)
WINDOW = KvSpec("sliding_window", 16, 4096, window=1024)
STATE = KvSpec("mamba", 0, 50_000, tokens_per_state=0, state_blocks=1)


def sizes(specs: list[KvSpec], rules: GroupingRules = RULES) -> list[int]:
    """Return the number of layers of each group."""
    return [len(group.layers) for group in form_groups(specs, rules)]


def test_equal_layers_share_one_group() -> None:
    """One kind of layer is one group, however many there are."""
    assert sizes([FULL] * 80) == [80]
    assert form_groups([], RULES) == ()


def test_the_smaller_bucket_sets_the_group_size_where_the_larger_is_far_off() -> None:
    """Ten full layers beside fifty windows: six groups of ten."""
    assert sizes([FULL] * 10 + [WINDOW] * 50) == [10] * 6


def test_the_larger_bucket_sets_the_group_size_within_the_tolerance() -> None:
    """24 and 35: one group each at 1.5, three at 1.25; without tolerance the smaller counts."""
    layers = [FULL] * 24 + [WINDOW] * 35
    assert sizes(layers) == [24, 35]
    assert sizes(layers, replace(RULES, tolerance=1.25)) == [24, 18, 17]
    assert sizes([FULL] * 24 + [WINDOW] * 36) == [24, 18, 18]
    assert sizes([FULL] * 2 + [WINDOW] * 3, replace(RULES, tolerance=1.0)) == [2, 2, 1]


def test_layers_are_dealt_out_so_that_pipeline_stages_get_their_share() -> None:
    """Every third window goes to one group of three."""
    groups = form_groups([FULL] * 2 + [WINDOW] * 6, RULES)
    assert [group.layers for group in groups] == [(0, 1), (2, 5), (3, 6), (4, 7)]
    runs = form_groups([FULL] * 2 + [WINDOW] * 5, replace(RULES, deals_layers_out=False))
    assert [group.layers for group in runs] == [(0, 1), (2, 3), (4, 5), (6,)]


def test_smaller_pages_grow_by_larger_blocks_or_are_padded() -> None:
    """A page that divides the largest gets more tokens, another one padding; states always do."""
    half = replace(FULL, state_bytes=2048)
    grown = form_groups([WINDOW, half], RULES)[1].first
    assert (grown.block_size, grown.page_size_bytes) == (32, WINDOW.page_size_bytes)
    assert isinstance(grown.block_size, int)
    odd = replace(FULL, state_bytes=3000)
    assert form_groups([WINDOW, odd], RULES)[1].first.page_size_bytes == WINDOW.page_size_bytes
    assert form_groups([FULL, STATE], RULES)[1].first.page_size_bytes == FULL.page_size_bytes
    with pytest.raises(PageSizeError):
        form_groups([WINDOW, odd], replace(RULES, pads_attention_pages=False))
    with pytest.raises(PageSizeError):
        form_groups([WINDOW, half], replace(RULES, unifies_page_sizes=False))


def test_heads_of_different_size_share_a_group_from_011_on() -> None:
    """Full attention with other heads is one type; before, mixed pages were refused."""
    mixed = [FULL, replace(FULL, state_bytes=1024)]
    assert sizes(mixed) == [2]
    before = replace(RULES, uniform_type_groups=False, unifies_page_sizes=False)
    with pytest.raises(PageSizeError):
        form_groups(mixed, before)


def test_without_the_hybrid_manager_windows_keep_every_token() -> None:
    """Windows beside full attention become full attention; states cannot."""
    off = replace(RULES, hybrid_manager=False)
    [group] = form_groups([FULL, WINDOW, WINDOW], off)
    assert {spec.kind for spec in group.specs} == {"full_attention"}
    assert sizes([WINDOW, WINDOW], off) == [2]
    with pytest.raises(PromotionError):
        form_groups([FULL, STATE], off)


@given(
    st.lists(st.sampled_from([FULL, WINDOW, replace(WINDOW, window=512)]), min_size=1, max_size=60),
    st.sampled_from((1.0, 1.25, 1.5)),
)
def test_every_layer_is_in_exactly_one_group(specs: list[KvSpec], tolerance: float) -> None:
    """Groups are a partition of the layers, and all layers of a group take the same blocks."""
    groups = form_groups(specs, replace(RULES, tolerance=tolerance))
    assert sorted(layer for group in groups for layer in group.layers) == list(range(len(specs)))
    length = RequestLength(10_000, 2048)
    for group in groups:
        assert len({spec.blocks_per_request(length) for spec in group.specs}) == 1


@pytest.mark.parametrize(
    ("spec", "blocks"),
    [
        (FULL, 625),
        # 1023 kept and 2048 in flight: 192 blocks, and one because the window may begin inside one.
        (WINDOW, 193),
        (replace(WINDOW, window=20_000), 626),
        (KvSpec("chunked_local", 16, 4096, window=1024), 192),
        (KvSpec("cross_attention", 16, 4096), 94),
        (STATE, 1),
        (replace(STATE, block_size=512, state_every_block=True, state_blocks=2), 22),
        (KvSpec("mla", 64, 1152), 157),
    ],
)
def test_blocks_of_one_request(spec: KvSpec, blocks: int) -> None:
    """10,000 tokens, 2,048 of them in flight, an encoder output of 1,500."""
    assert spec.blocks_per_request(RequestLength(10_000, 2048, 1, 1500)) == blocks


def test_decode_context_parallelism_splits_only_full_attention() -> None:
    """Four ranks keep a quarter of the tokens each."""
    assert FULL.blocks_per_request(RequestLength(10_000, 2048, 4)) == 157
    assert STATE.blocks_per_request(RequestLength(10_000, 2048, 4)) == 1


def test_pages_that_neither_grow_nor_are_padded_are_refused_in_vllms_words() -> None:
    """0.12.0: heads of 96 in windows beside heads of 128, whose pages they do not divide."""
    full = AttentionSpec("full_attention", 8, 128, 128)
    window = AttentionSpec("sliding_window", 8, 96, 96, window=512)
    model = dense(layers=(LayerSpec(full), LayerSpec(window)))
    start = request(model=model, release=shipped("0.12.0"))
    with pytest.raises(Refusal) as refused:
        cache_shape(start, resolve_engine_args(start))
    reason = refused.value.reason
    assert reason.code == "refused_by_vllm"
    assert reason.vllm_error.startswith("The page size of the layer is not divisible by the max")
    assert dict(reason.numbers) == {
        "page_size_bytes": 16 * 8 * 2 * 96 * 2,
        "largest_page_size_bytes": 16 * 8 * 2 * 128 * 2,
    }
    later = replace(start, release=shipped("0.24.0"))
    assert cache_shape(later, resolve_engine_args(later)).bytes_per_block == 65_536


def test_a_state_is_padded_even_where_its_page_would_divide() -> None:
    """A recurrent layer has no tokens to grow by, and is padded where attention is refused."""
    half = replace(STATE, state_bytes=FULL.page_size_bytes // 2)
    for rules in (RULES, replace(RULES, pads_attention_pages=False)):
        found = form_groups([FULL, half], rules)[1].first
        assert (found.block_size, found.page_size_bytes) == (0, FULL.page_size_bytes)


def test_pages_of_latent_vectors_are_never_padded() -> None:
    """A page that does not divide the largest is refused there, whatever the release."""
    latent = KvSpec("mla", 16, 3000)
    with pytest.raises(PageSizeError) as refused:
        form_groups([WINDOW, latent], RULES)
    assert refused.value.args == (latent.page_size_bytes, WINDOW.page_size_bytes)


def test_full_attention_with_a_window_it_does_not_use_is_one_kind() -> None:
    """Two plain layers, two with a window and four windows are two buckets of four."""
    unused = replace(FULL, window=512)
    assert sizes([FULL] * 2 + [unused] * 2 + [WINDOW] * 4) == [4, 4]


def test_only_windows_beside_full_attention_are_promoted() -> None:
    """Latent layers stay what they are, and windows of two sizes alone do not become one kind."""
    off = replace(RULES, hybrid_manager=False)
    latent = KvSpec("mla", 16, 4096)
    window = KvSpec("sliding_window_mla", 8, 4096, window=64)
    [group] = form_groups([latent, window], off)
    assert [(spec.kind, spec.block_size) for spec in group.specs] == [("mla", 16)] * 2
    with pytest.raises(PromotionError):
        form_groups([WINDOW, replace(WINDOW, window=512)], off)
