"""What could be better on a server that runs: each is found where it is so, and nowhere else."""

from collections.abc import Mapping

import pytest

from app.readings.findings import Finding, most_helpful
from tests.readings.told_starts import LLAMA, read, text_of

EAGER = {**LLAMA, "enforce_eager": "true"}
LONG = {**LLAMA, "max_model_len": "131072"}
WIDE = {**LLAMA, "gpu": "h100-80gb-hbm3", "tensor_parallel_size": "16"}
GPT_OSS = {
    "model": "gpt-oss-20b",
    "gpu": "h100-80gb-hbm3",
    "vllm_version": "0.25.1",
    "max_model_len": "32768",
}
# A server that leaves nothing to find: all of the card, an 8-bit cache, as many places as requests.
GOOD = {
    **LLAMA,
    "kv_cache_dtype": "fp8",
    "gpu_memory_utilization": "0.95",
    "max_num_seqs": "25",
}
STATISTICS = (
    "INFO 06-14 09:50:00 [loggers.py:236] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
    "Running: 12 reqs, Waiting: 7 reqs{preemptions}, GPU KV cache usage: {usage}%, "
    "Prefix cache hit rate: 0.0%"
)


def findings(server: Mapping[str, str], *lines: str, **figures: float) -> dict[str, Finding]:
    """Return the findings of a start whose log goes on with `lines`, by code."""
    found = read("\n".join([text_of(server, **figures), *lines])).findings
    assert [each.severity for each in found] == sorted(
        (each.severity for each in found), key=("no", "tight", "info").index
    )
    by_code = {each.code: each for each in found}
    assert len(by_code) == len(found)
    return by_code


def effect(found: Finding) -> float:
    """Return the tokens after a change over those before."""
    assert found.change
    assert found.effect is not None
    return found.effect.gain


def test_a_good_server_leaves_nothing_to_find() -> None:
    """The control: no finding at all."""
    assert findings(GOOD) == {}


def test_an_8_bit_cache_holds_twice_as_much() -> None:
    """A cache of 16 bit is told with the flag, and what it gives."""
    found = findings({**GOOD, "kv_cache_dtype": "auto", "max_num_seqs": "12"})
    assert set(found) == {"kv_cache_dtype_16_bit"}
    assert found["kv_cache_dtype_16_bit"].change == {"kv_cache_dtype": "fp8"}
    assert effect(found["kv_cache_dtype_16_bit"]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("given", "code"), [("0.92", "utilization_default"), ("0.8", "utilization_low")]
)
def test_more_of_the_card_may_be_used(given: str, code: str) -> None:
    """0.92 is the release's own, less is less than that; both go up to 0.95."""
    found = findings({**GOOD, "gpu_memory_utilization": given, "max_num_seqs": "18"})[code]
    assert found.numbers == {"gpu_memory_utilization": float(given), "default": 0.92}
    assert found.change == {"gpu_memory_utilization": 0.95}
    assert effect(found) > 1.03


@pytest.mark.parametrize(
    "server",
    [
        {**LLAMA, "gpu_memory_utilization": "0.93"},
        {**LLAMA, "kv_cache_memory_bytes": "10000000000"},
        {**LLAMA, "num_gpu_blocks_override": "5000"},
        {**LLAMA, "gpu": "gb10", "vllm_version": "0.32.0"},
    ],
)
def test_no_share_is_advised_where_it_would_not_help(server: dict[str, str]) -> None:
    """Set by hand above the default, a fixed cache, fixed blocks, or memory shared with a host."""
    assert not {"utilization_default", "utilization_low"} & findings(server).keys()


def test_a_card_that_is_not_free_is_told_and_not_filled() -> None:
    """6.4 of 44.4 GiB in use at start: no larger share is advised then."""
    found = findings(LLAMA, free=37.99)
    assert found["memory_in_use_at_start"].numbers == pytest.approx(
        {"used_gib": 6.4, "total_gib": 44.39}
    )
    assert "utilization_default" not in found
    assert "memory_in_use_at_start" not in findings(LLAMA, free=42.4)


def test_a_context_that_hardly_fits_once_is_far_too_long() -> None:
    """1.5 requests of 131,072 tokens: the longest usual length with four of them is offered."""
    found = findings(LONG)["context_far_above"]
    assert found.change == {"max_model_len": 49_152}
    assert found.effect is not None
    assert found.effect.concurrency_after >= 4
    assert found.effect.concurrency_before == pytest.approx(1.5, abs=0.05)
    assert "context_far_above" not in findings({**LONG, "max_model_len": "65536"})


def test_places_are_compared_with_the_requests_that_fit() -> None:
    """Twelve fit: 4 places are too few, 256 far too many, 16 as they should be."""
    above, below = findings(LLAMA), findings({**LLAMA, "max_num_seqs": "4"})
    assert above["max_num_seqs_above_cache"].change == {"max_num_seqs": 16}
    assert below["max_num_seqs_below_cache"].change == {"max_num_seqs": 12}
    places = {"max_num_seqs_above_cache", "max_num_seqs_below_cache"}
    assert not places & findings({**LLAMA, "max_num_seqs": "16"}).keys()


def test_places_that_cost_nothing_are_not_told() -> None:
    """Without graphs one place more than advised frees no block when it goes; 256 do with them."""
    assert "max_num_seqs_above_cache" not in findings(
        {**LLAMA, "enforce_eager": "true", "max_num_seqs": "17"}
    )
    assert effect(findings(LLAMA)["max_num_seqs_above_cache"]) > 1


def test_preemptions_are_told_with_the_number_that_fits() -> None:
    """Four of them: as many places as requests fit, where there are more."""
    line = STATISTICS.format(preemptions=", Preemptions: 4", usage="99.0")
    found = findings(LLAMA, line)
    assert found["preemptions"].numbers == {"num_preemptions": 4, "requests": 12}
    assert found["preemptions"].change == {"max_num_seqs": 12}
    assert "max_num_seqs_above_cache" not in found
    few = findings({**LLAMA, "max_num_seqs": "4"}, line)["preemptions"]
    assert (few.change, few.effect) == ({}, None)


def test_a_full_cache_is_told_with_those_who_waited() -> None:
    """97.5 % is full, 94 % is not."""
    full = findings(LLAMA, STATISTICS.format(preemptions="", usage="97.5"))
    assert full["cache_was_full"].numbers == {"usage_percent": 97.5, "waiting": 7}
    assert "cache_was_full" not in findings(LLAMA, STATISTICS.format(preemptions="", usage="94.0"))


def test_graphs_that_took_less_than_estimated_leave_a_share() -> None:
    """0.4 GiB less of 44.39 are nine thousandths of the card; 0.1 GiB are nothing to tell."""
    found = findings(LLAMA, cudagraph_estimate=0.7, cudagraph=0.3)["graph_estimate_too_high"]
    assert found.numbers == pytest.approx(
        {"estimate_gib": 0.7, "actual_gib": 0.3, "wasted_gib": 0.4}
    )
    assert found.change == {"gpu_memory_utilization": 0.929}
    assert "graph_estimate_too_high" not in findings(LLAMA, cudagraph_estimate=0.7, cudagraph=0.6)
    before = {**LLAMA, "vllm_version": "0.18.1"}
    assert "graph_estimate_too_high" not in findings(before, cudagraph_estimate=0.7, cudagraph=0.3)


def test_eager_is_told_with_what_graphs_take() -> None:
    """Graphs cost a little cache, and the price is shown."""
    found = findings(EAGER)["eager"]
    assert found.change == {"enforce_eager": False}
    assert 0.9 < effect(found) < 1
    assert "eager" not in findings(LLAMA)


def test_the_manager_for_mixed_layers_is_asked_for_where_it_helps() -> None:
    """gpt-oss loses a third of its tokens without it; a model of one kind of layer loses none."""
    off = {"disable_hybrid_kv_cache_manager": "true"}
    found = findings({**GPT_OSS, **off})["hybrid_manager_disabled"]
    assert found.change == {"disable_hybrid_kv_cache_manager": False}
    assert effect(found) > 1.5
    assert "hybrid_manager_disabled" not in findings({**LLAMA, **off})


def test_heads_that_lie_twice_may_be_divided_by_context() -> None:
    """Eight KV heads on sixteen cards: every token lies on two of them."""
    found = findings(WIDE)["kv_heads_replicated"]
    assert found.numbers == {"num_kv_heads": 8, "tensor_parallel_size": 16}
    assert found.change == {"decode_context_parallel_size": 2}
    assert effect(found) == pytest.approx(2)
    divided = {**WIDE, "decode_context_parallel_size": "2"}
    assert "kv_heads_replicated" not in findings(divided)
    assert "kv_heads_replicated" not in findings({**WIDE, "tensor_parallel_size": "8"})


def test_blocks_set_by_hand_are_told() -> None:
    """5,000 blocks where 12,000 fit: without the override the cache is more than twice as large."""
    found = findings({**LLAMA, "num_gpu_blocks_override": "5000"})["blocks_overridden"]
    assert found.numbers == {"num_gpu_blocks": 5000}
    assert found.change == {"num_gpu_blocks_override": None}
    assert effect(found) > 2


def test_padding_that_the_log_tells_of_is_told() -> None:
    """Empty layers and pages of states; a quarter of a percent is nothing to tell."""
    layers = (
        "WARNING 06-14 09:41:20 [kv_cache_utils.py:1000] Add 3 padding layers, "
        "may waste at most 12.50% KV cache memory"
    )
    pages = "INFO 06-14 09:41:20 [config.py:100] Padding mamba page size by {percent}%"
    found = findings(GOOD, layers, pages.format(percent="4.25"))
    assert found["padding_layers"].numbers == {"padding_layers": 3, "waste_percent": 12.5}
    assert found["mamba_page_padding"].numbers == {"percent": 4.25}
    assert findings(GOOD, pages.format(percent="0.25")) == {}


def test_memory_that_vllm_itself_calls_unused_is_told() -> None:
    """Its own figure for all of the card, where it is more than a fiftieth above the cache."""
    measured = read(text_of(GOOD)).result
    assert measured is not None
    assert measured.available_kv_cache_memory is not None
    available = measured.available_kv_cache_memory.likely
    for share, codes in ((1.05, {"memory_left_unused"}), (1.01, set())):
        most = round(share * available)
        found = findings(
            GOOD,
            "DEBUG 06-14 09:41:55 [gpu_worker.py:955] Replace gpu_memory_utilization config with "
            f"`--kv-cache-memory={most}` to fit into requested memory, or "
            f"`--kv-cache-memory={most}` to fully utilize gpu memory.",
        )
        assert set(found) == codes
        if codes:
            assert found["memory_left_unused"].change == {"kv_cache_memory_bytes": most}
            assert effect(found["memory_left_unused"]) == pytest.approx(1.05, abs=0.01)


def test_what_helps_most_comes_first_and_a_shorter_context_last() -> None:
    """By tokens gained; what gains nothing is left out, and three are enough."""
    found = findings({**LONG, "gpu_memory_utilization": "0.8"}).values()
    helping = most_helpful(found, count=9)
    assert [each.code for each in helping][-1] == "context_far_above"
    gains = [each.effect.gain for each in helping[:-1] if each.effect]
    assert gains == sorted(gains, reverse=True)
    assert most_helpful(found) == helping[:3]
    assert "eager" not in {each.code for each in most_helpful(findings(EAGER).values(), count=9)}


def test_a_server_that_vllm_would_refuse_has_no_findings() -> None:
    """Where the sizing gives no cache, what helps are ways out."""
    text = text_of(LLAMA).replace("'max_model_len': 16384", "'max_model_len': 999999")
    text = text.replace("Maximum concurrency for 16,384", "Maximum concurrency for 999,999")
    assert read(text).findings == ()
