"""The derivations in docs/derivations: every number of theirs, worked out here and by vLLM."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import cache_for, cache_shape
from app.core.layout import Layout
from app.core.request import SizingRequest
from tests.core.oracle import ROOT, OracleCase, answer, cases, releases

PAGES = ROOT / "docs" / "derivations"


def case(name: str) -> OracleCase:
    """Return a published case."""
    return next(case for case in cases() if case.name == name)


def page(name: str) -> str:
    """Return the text of a derivation."""
    return Path(PAGES / f"{name}.md").read_text(encoding="utf-8")


def groups(request: SizingRequest) -> dict[str, tuple[int, int, int]]:
    """Return page bytes, block size and blocks of a request by kind of group."""
    shape = cache_shape(request, resolve_engine_args(request))
    return {g.kind: (g.page_size_bytes, g.block_size, g.blocks_per_request) for g in shape.groups}


@pytest.mark.parametrize(
    ("name", "published", "numbers"),
    [
        ("mla", "h100-007", (1_152, 18_432, 1_124_352, 49_659, 512, 794_544)),
        (
            "sliding-window",
            "h100-025",
            (4_096, 65_536, 655_360, 104_857, 16_384, 17_407, 1_089, 4_096, 10_630, 646_463),
        ),
        (
            "hybrid",
            "h100x-053",
            (24_576, 524_288, 548_864, 544, 557_056, 6_684_672, 10_280, 121, 127, 5_304_803),
        ),
    ],
)
def test_the_page_has_every_number_and_ends_where_vllm_does(
    name: str, published: str, numbers: tuple[int, ...]
) -> None:
    """The numbers stand on the page; tokens, blocks and concurrency are vLLM's own answer."""
    text = page(name)
    for number in numbers:
        assert f"{number:,}" in text, number
    own = case(published)
    assert answer(own)["tokens"] == own.expected["tokens"] == numbers[-1]
    assert own.expected["num_gpu_blocks"] in numbers
    assert f"{own.available_bytes:,}" in text
    assert f"{own.expected['concurrency']:.2f}x" in text


def test_mla_step_by_step() -> None:
    """A token, a page, a block and a request, as the page derives them."""
    own = case("h100-007")
    assert groups(own.request) == {"mla": (18_432, 16, 512)}
    assert (512 + 64) * 2 == 1_152
    assert 16 * 1_152 * 61 == 1_124_352
    assert own.available_bytes // 1_124_352 == 49_659
    one = replace(own.request, layout=Layout())
    assert groups(one) == groups(own.request)
    split = Layout(tensor_parallel_size=8, decode_context_parallel_size=8)
    assert groups(replace(own.request, layout=split))["mla"][2] == 64
    fp8 = replace(
        own.request, engine_args=own.request.engine_args.with_flag("kv_cache_dtype", "fp8")
    )
    assert groups(fp8)["mla"][:2] == (576 * 64, 64)


def test_sliding_windows_step_by_step() -> None:
    """Pages, groups, what is in flight, and what the older releases made of it."""
    own = case("h100-025")
    assert groups(own.request) == {
        "sliding_window": (65_536, 16, 1_089),
        "full_attention": (65_536, 16, 4_096),
    }
    assert 1_024 - 1 + 2 * 8_192 == 17_407
    assert 6 * 1_089 + 4_096 == 10_630
    small = own.request.engine_args.with_flag("max_num_batched_tokens", 1_024)
    assert groups(replace(own.request, engine_args=small))["sliding_window"][2] == 193
    before = replace(own.request, release=releases().release_for("0.20.0")[0])
    found = cache_for(before, resolve_engine_args(before), [own.available_bytes])
    assert found.kv_cache_size_tokens == 104_857 // 7 * 16


def test_hybrids_step_by_step() -> None:
    """A state decides about the block size; the release about its blocks."""
    own = case("h100x-053")
    conv, recurrent = 3 * (2 * 16 * 128 + 32 * 128) // 2 * 2, 16 * 128 * 128 * 2
    assert (conv, recurrent) == (24_576, 524_288)
    assert -(-(conv + recurrent) // (16 * 1_024)) * 16 == 544
    assert groups(own.request) == {
        "mamba": (557_056, 544, 2),
        "full_attention": (557_056, 544, 121),
    }
    newer = replace(own.request, release=releases().release_for("0.33.0")[0])
    assert groups(newer)["mamba"] == (576 * 1_024, 576, 3)
    assert 6 * 544 == 3_264
