"""Whoever is told "it does not fit" is told what would, and that was sized."""

import pytest

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.core.ways_out import could_hold
from app.wizard.answers import Answers
from app.wizard.permalink import query_pairs
from app.wizard.sizing_request import to_request
from app.wizard.ways_out import Way, ways_out_of

LLAMA = Answers(
    model="llama-3.3-70b",
    checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8",
    gpu="rtx-pro-6000-server",
    max_model_len=8192,
)


def ways(answers: Answers, catalogue: Catalogue) -> tuple[Way, ...]:
    """Return the ways out of answers that do not fit."""
    prepared = to_request(answers, catalogue)
    assert prepared.request is not None
    result = size(prepared.request)
    assert not result.ok or not result.verdict_requests
    return ways_out_of(prepared, result, catalogue)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_model_len": 131072},
        {"max_model_len": 200_000},
        {"checkpoint": "bf16"},
        {"tensor_parallel_size": 3},
        {"decode_context_parallel_size": 2},
        {"kv_cache_memory_bytes": 100_000_000},
        {"num_gpu_blocks_override": 2},
        {"gpu": "t4"},
        {"gpu_memory_utilization": 0.05},
        {"checkpoint": "bf16", "gpu": "l4", "tensor_parallel_size": 3, "max_model_len": 200_000},
    ],
)
def test_every_way_out_fits(catalogue: Catalogue, changes: dict[str, int | str | float]) -> None:
    """There is at least one, and its answers, sized again, promise a request."""
    found = ways(LLAMA.with_changes(**changes), catalogue)
    assert found
    for way in found:
        prepared = to_request(way.answers, catalogue)
        assert prepared.request is not None
        assert size(prepared.request) == way.result
        assert way.result.ok
        assert way.result.verdict_requests >= 1
        assert query_pairs(way.answers)


def test_several_mistakes_get_one_fresh_start_with_no_needless_change(
    catalogue: Catalogue,
) -> None:
    """Where no single change is enough, what need not change is left alone."""
    wrong = LLAMA.with_changes(
        tensor_parallel_size=3, decode_context_parallel_size=2, enforce_eager=True
    )
    (way,) = ways(wrong, catalogue)
    assert way.changes == {"tensor_parallel_size": 1, "decode_context_parallel_size": 1}
    assert way.answers.enforce_eager


def test_what_cannot_lie_on_the_cards_is_not_sized(catalogue: Catalogue) -> None:
    """131 GiB do not come near to one card of 96 GB, but to two; a given memory asks nothing."""
    heavy = LLAMA.with_changes(checkpoint="bf16")
    for changes, expected in (
        ({}, False),
        ({"tensor_parallel_size": 2}, True),
        ({"cpu_offload_gb": 60.0}, True),
        ({"available_kv_cache_memory_bytes": 10**9}, True),
    ):
        request = to_request(heavy.with_changes(**changes), catalogue).request
        assert request is not None
        assert could_hold(request) is expected


def test_another_card_leaves_the_server(catalogue: Catalogue) -> None:
    """A proposed card that is not in the chosen server takes the server back."""
    answers = LLAMA.with_changes(server="1x-rtx-pro-6000-server", max_model_len=131072)
    (card,) = (way for way in ways(answers, catalogue) if "gpu" in way.changes)
    assert card.changes == {"gpu": "h200-nvl", "server": None}
    assert card.answers.server is None


def test_a_release_that_cannot_run_the_model_is_left_last(catalogue: Catalogue) -> None:
    """Sparse attention is younger than 0.8.5: no card helps, so the usual release is named."""
    old = Answers(model="deepseek-v3.2", gpu="a10", vllm_version="0.8.5")
    (way,) = ways(old, catalogue)
    assert way.answers.vllm_version == Answers().vllm_version
    assert way.result.ok
