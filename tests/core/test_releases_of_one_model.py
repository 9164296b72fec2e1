"""One model through the releases: the same memory, another line in the log."""

from collections.abc import Iterable

import pytest

from app.core.engine import EngineArgs, ResolvedEngineArgs
from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import cache_for
from app.core.layout import Layout
from app.core.log_lines import log_lines
from app.core.reasons import Refusal
from app.core.request import SizingRequest
from app.core.result import Cache
from app.core.units import GIB
from tests.core.oracle import gpus, models, releases

H100 = "h100-80gb-hbm3"


def start(
    version: str,
    gib: float = 12.0,
    model: str = "gpt-oss-120b",
    card: str = H100,
    tp: int = 1,
    **args: object,
) -> tuple[ResolvedEngineArgs, Cache]:
    """Work out a start with that much memory for the cache on each card."""
    release, _ = releases().release_for(version)
    given = EngineArgs()
    for flag, value in {"max_model_len": 131072, **args}.items():
        given = given.with_flag(flag, value)
    spec, checkpoint = models()[model]
    request = SizingRequest(
        spec, checkpoint, gpus()[card], release, Layout(tensor_parallel_size=tp), given
    )
    resolved = resolve_engine_args(request)
    return resolved, cache_for(request, resolved, [int(gib * GIB)])


def lines(version: str, **args: object) -> str:
    """Return the lines of a start, one after the other."""
    _, cache = start(version, **args)  # type: ignore[arg-type]
    release, _ = releases().release_for(version)
    return "\n".join(log_lines(release, gpus()[H100], cache))


TWO = "GPU KV cache size: {} tokens\nMaximum concurrency for 131,072 tokens per request: {}x"
ONE = "GPU KV cache size: {} tokens, Maximum concurrency for 131,072 tokens per request: {}x"


@pytest.mark.parametrize(
    ("versions", "form", "tokens", "concurrency"),
    [
        # Blocks of the smallest group; windows hold one batch.
        (("0.9.2", "0.10.0", "0.11.2", "0.19.1", "0.20.0"), TWO, "174,752", "2.51"),
        # Tokens are concurrency x length.
        (("0.20.1", "0.25.1"), TWO, "328,620", "2.51"),
        # Windows hold every batch in flight: two.
        (("0.26.0",), TWO, "310,381", "2.37"),
        (("0.28.0", "0.30.0", "0.32.0", "0.33.0"), ONE, "310,381", "2.37"),
    ],
)
def test_each_release_prints_its_own_figures(
    versions: Iterable[str], form: str, tokens: str, concurrency: str
) -> None:
    """gpt-oss-120b with 12 GiB for the cache: figures and lines as each release prints them."""
    for version in versions:
        assert lines(version) == form.format(tokens, concurrency), version


def test_windows_count_as_full_attention_before_they_had_groups() -> None:
    """0.8.5 keeps every token in every layer and divides slots by the length."""
    _, cache = start("0.8.5")
    assert len(cache.groups) == 1
    assert cache.kv_cache_size_tokens == cache.num_gpu_blocks * 16
    assert cache.max_concurrency == cache.kv_cache_size_tokens / 131072


@pytest.mark.parametrize(
    ("version", "gib", "args", "printed"),
    [
        ("0.11.2", 8.99, {"max_model_len": 98304}, 130_960),
        ("0.25.1", 10.52, {"max_num_batched_tokens": 1024}, 303_646),
    ],
)
def test_observed_starts_lie_within_the_rounding_of_their_memory(
    version: str, gib: float, args: dict[str, int], printed: int
) -> None:
    """Logs give memory with two decimals: the printed tokens lie between both ends of that."""
    low, high = (
        start(version, gib + half, **args)[1].kv_cache_size_tokens  # type: ignore[arg-type]
        for half in (-0.005, 0.005)
    )
    assert low <= printed <= high


def test_defaults_moved_with_the_releases() -> None:
    """The share of the card, batches and requests in flight follow the release's own defaults."""
    assert [start(v)[0].gpu_memory_utilization for v in ("0.19.1", "0.20.0")] == [0.9, 0.92]
    assert [start(v)[0].async_scheduling for v in ("0.13.0", "0.14.0")] == [False, True]
    assert [start(v, 60, card="b200")[0].max_num_batched_tokens for v in ("0.27.1", "0.28.0")] == [
        8192,
        16384,
    ]
    assert [start(v)[0].max_in_flight_tokens for v in ("0.25.1", "0.26.0")] == [8192, 16384]


@pytest.mark.parametrize(
    ("version", "card", "block_size"),
    [
        ("0.10.0", H100, 64),
        ("0.10.0", "b200", 16),
        ("0.10.1", "b200", 128),
        ("0.15.0", "b200", 64),
        ("0.17.1", H100, 64),
        ("0.18.0", H100, 16),
        ("0.18.0", "b200", 32),
        ("0.33.0", "l40s", 16),
    ],
)
def test_blocks_of_mla_follow_card_and_release(version: str, card: str, block_size: int) -> None:
    """MLA got its block size from the platform first and from its kernel from 0.18.0 on."""
    _, cache = start(version, 60, "deepseek-v3", card, tp=8, max_model_len=4096)
    assert cache.block_size == block_size


def test_states_of_hybrids_follow_the_release() -> None:
    """Prefix caching for hybrids came with 0.26.0; states take the blocks of the release's mode."""
    mamba = {"model": "nemotron-3-nano", "max_model_len": 32768}
    found = {}
    for version in ("0.12.0", "0.20.0", "0.26.0", "0.28.0", "0.32.0"):
        resolved, cache = start(version, 40, **mamba)  # type: ignore[arg-type]
        states = {g.blocks_per_request for g in cache.groups if g.kind == "mamba"}
        found[version] = (resolved.mamba_cache_mode, cache.block_size, states)
    assert found["0.12.0"][0] == found["0.20.0"][0] == "none"
    assert found["0.20.0"][2] == {1}
    assert found["0.26.0"][0] == "all"
    assert found["0.26.0"][2] == {-(-32768 // found["0.26.0"][1])}
    assert found["0.28.0"][0] == "align"
    assert found["0.28.0"][2] == {2}
    assert found["0.32.0"][2] == {3}


def test_chunked_attention_lost_its_groups_for_a_while() -> None:
    """Llama-4's chunks share a group with full attention from 0.10.1 to 0.13.0."""
    groups = {
        version: len(start(version, 60, "llama-4-scout", tp=4)[1].groups)
        for version in ("0.10.0", "0.10.1", "0.13.0", "0.14.0")
    }
    assert groups["0.10.1"] == groups["0.13.0"] == 1
    assert groups["0.10.0"] == groups["0.14.0"] > 1


@pytest.mark.parametrize(
    ("version", "factor"), [("0.11.2", 1.0), ("0.12.0", 1.25), ("0.18.0", 1.5)]
)
def test_groups_are_padded_within_the_release_tolerance(version: str, factor: float) -> None:
    """38 windows beside 24 full layers: one padded group each only where 38 < 24 x tolerance."""
    _, cache = start(version, 60, "synthetic-gemma-swa38-full24", max_model_len=8192)
    padded = 24 * factor > 38
    assert (len(cache.groups) == 2) is padded
    _, cache = start(version, 60, "synthetic-gemma-swa35-full27", max_model_len=8192)
    assert (len(cache.groups) == 2) is (27 * factor > 35)


def test_auto_length_and_dtypes_came_with_their_releases() -> None:
    """A release refuses what it does not know: `auto`, NVFP4, bfloat16 by name."""
    for version, args in (
        ("0.13.0", {"max_model_len": -1}),
        ("0.19.1", {"kv_cache_dtype": "nvfp4"}),
        ("0.10.2", {"kv_cache_dtype": "bfloat16"}),
    ):
        with pytest.raises(Refusal):
            start(version, **args)
    assert start("0.14.0", max_model_len=-1)[1].max_model_len == 131072
    assert start("0.15.0", kv_cache_dtype="bfloat16")[1].num_gpu_blocks
