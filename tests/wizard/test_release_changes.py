"""What changed between two releases: each rule's effect is computed, and together they add up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.catalogue import Catalogue
from app.core.request import SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from app.wizard.answers import parse_answers
from app.wizard.release_changes import ReleaseComparison, compare_releases
from app.wizard.sizing_request import to_request

HALF_A_HUNDREDTH = 0.005
# one gpt-oss-120b on one H100 with 10.52 GiB for the cache, 131,072 tokens, 1,024 a step
LINES = {
    "0.11.2": ("153,200", "2.32"),
    "0.19.1": ("153,200", "2.32"),
    "0.20.0": ("153,200", "2.32"),
    "0.20.1": ("303,709", "2.32"),
    "0.25.1": ("303,709", "2.32"),
    "0.26.0": ("301,375", "2.30"),
    "0.28.0": ("301,375", "2.30"),
    "0.32.0": ("301,375", "2.30"),
    "0.33.0": ("301,375", "2.30"),
}
FROM_HERE_ONE_LINE = "0.28.0"


def gpt_oss(
    catalogue: Catalogue, version: str, gib: float, length: int, **more: str
) -> SizingRequest:
    """Return one gpt-oss-120b on one H100 with a given memory for its cache."""
    pairs = {
        "model": "gpt-oss-120b",
        "gpu": "h100-80gb-hbm3",
        "vllm_version": version,
        "available_kv_cache_memory_bytes": str(int(gib * GIB)),
        "max_model_len": str(length),
        **more,
    }
    return request_of(catalogue, pairs)


def request_of(catalogue: Catalogue, pairs: dict[str, str]) -> SizingRequest:
    """Return the request that answers mean."""
    request = to_request(parse_answers(pairs.items()).answers, catalogue).request
    assert request is not None
    return request


def compared(catalogue: Catalogue, request: SizingRequest, version: str) -> ReleaseComparison:
    """Compare a case with the same case in another release."""
    other, notice = catalogue.releases.release_for(version)
    assert not notice
    return compare_releases(request, other, catalogue.releases.rows)


@pytest.mark.parametrize(
    ("version", "gib", "length", "more", "printed"),
    [
        ("0.11.2", 8.99, 98_304, {}, 130_960),
        ("0.25.1", 10.52, 131_072, {"max_num_batched_tokens": "1024"}, 303_646),
    ],
)
def test_observed_lines_lie_within_the_rounding_of_their_memory(
    catalogue: Catalogue, version: str, gib: float, length: int, more: dict[str, str], printed: int
) -> None:
    """Logs round the memory to a hundredth of a GiB; the printed tokens lie between both ends."""
    ends = [
        size(gpt_oss(catalogue, version, gib + off, length, **more)).cache
        for off in (-HALF_A_HUNDREDTH, HALF_A_HUNDREDTH)
    ]
    low, high = (cache.kv_cache_size_tokens for cache in ends if cache is not None)
    assert low <= printed <= high
    assert high - low < printed / 500


@pytest.mark.parametrize("version", LINES)
def test_the_same_case_through_the_releases(catalogue: Catalogue, version: str) -> None:
    """Each release prints its own figures in its own words."""
    request = gpt_oss(catalogue, version, 10.52, 131_072, max_num_batched_tokens="1024")
    tokens, concurrency = LINES[version]
    first = f"GPU KV cache size: {tokens} tokens"
    second = f"Maximum concurrency for 131,072 tokens per request: {concurrency}x"
    one_line = (f"{first}, {second}",)
    later = request.release.number >= tuple(map(int, FROM_HERE_ONE_LINE.split(".")))
    assert size(request).log_lines == (one_line if later else (first, second))


def test_the_rule_that_moved_is_named_with_its_effect(catalogue: Catalogue) -> None:
    """Between 0.20.0 and 0.20.1 only the way of counting tokens moved, and it moved all of them."""
    request = gpt_oss(catalogue, "0.20.0", 10.52, 131_072, max_num_batched_tokens="1024")
    comparison = compared(catalogue, request, "0.20.1")
    effects = {change.rule: change.effect for change in comparison.changes}
    assert effects["tokens_rule"] == "figures"
    assert [rule for rule, effect in effects.items() if effect != "none"] == ["tokens_rule"]
    moved = next(each for each in comparison.changes if each.rule == "tokens_rule")
    assert moved.since == "0.20.1"
    assert "kv_cache_utils" in moved.source


@pytest.mark.parametrize(
    ("model", "gpu", "first", "second"),
    [
        ("gpt-oss-120b", "h100-80gb-hbm3", "0.11.2", "0.33.0"),
        ("gpt-oss-20b", "rtx-pro-6000-server", "0.33.0", "0.19.1"),
        ("llama-3.1-8b", "h200-nvl", "0.9.0", "0.32.0"),
        ("qwen3-8b", "l40s", "0.32.0", "0.8.5"),
    ],
)
def test_effects_lead_from_one_release_to_the_other(
    catalogue: Catalogue, model: str, gpu: str, first: str, second: str
) -> None:
    """Once every rule is replaced, the case is what the other release makes of it."""
    request = request_of(catalogue, {"model": model, "gpu": gpu, "vllm_version": first})
    comparison = compared(catalogue, request, second)
    last = comparison.changes[-1].result
    assert last.log_lines == comparison.after.log_lines
    assert last.available_kv_cache_memory == comparison.after.available_kv_cache_memory
    assert last.tokens_range == comparison.after.tokens_range


def test_a_rule_called_idle_changes_nothing_either_way(catalogue: Catalogue) -> None:
    """Idle rules, changed in the first release or taken back in the second, move no line."""
    request = gpt_oss(catalogue, "0.25.1", 10.52, 131_072)
    comparison = compared(catalogue, request, "0.26.0")
    other = comparison.after.request.release
    idle = [each for each in comparison.changes if each.effect == "none"]
    assert len(idle) >= 2
    for each in idle:
        changed = replace(request.release, **{each.rule: each.after})
        assert size(replace(request, release=changed)).log_lines == comparison.before.log_lines
        back = replace(other, **{each.rule: each.before})
        assert size(replace(request, release=back)).log_lines == comparison.after.log_lines


def test_a_rule_that_needs_another_is_not_called_idle(catalogue: Catalogue) -> None:
    """Asynchronous scheduling does nothing until windows hold every step in flight."""
    request = gpt_oss(catalogue, "0.11.2", 10.52, 131_072)
    comparison = compared(catalogue, request, "0.26.0")
    effects = {change.rule: change.effect for change in comparison.changes}
    assert effects["async_scheduling"] == "together"
    assert effects["in_flight_counts_async"] == "figures"


def test_a_release_is_equal_to_itself(catalogue: Catalogue) -> None:
    """Nothing differs between a release and itself."""
    request = gpt_oss(catalogue, "0.32.0", 10.52, 131_072)
    assert compared(catalogue, request, "0.32.0").changes == ()
