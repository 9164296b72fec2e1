"""Starts that fail for want of memory are called that, with numbers, in vLLM's order."""

from types import MappingProxyType

import pytest

from app.core.coefficients import Bounds, exactly
from app.core.layout import Layout
from app.core.model_spec import LayerSpec, StateSpec
from app.core.reasons import Reason
from app.core.request import Measured, SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from tests.core.memory_case import card, dense, release, request, runner


def reason(asked: SizingRequest) -> Reason:
    """Return why the request fails."""
    found = size(asked).reason
    assert found is not None
    return found


def weights(gib: float) -> MappingProxyType[str, Bounds]:
    """Return a share that makes the 8 MiB of the small model weigh that much."""
    return MappingProxyType({"": exactly(gib * GIB / (8 * 2**20))})


def test_a_budget_that_is_not_free_fails_first() -> None:
    """100 GiB with 1 GiB of context cannot give 99.5 GiB; vLLM's own text carries the numbers."""
    found = reason(request(gpu_memory_utilization=0.995))
    assert found.code == "free_memory_below_request"
    assert dict(found.numbers) == {
        "free_gib": 99.0,
        "total_gib": 100.0,
        "requested_gib": 99.5,
        "gpu_memory_utilization": 0.995,
        "other_processes_gib": 0.0,
    }
    assert "(99.0/100.0 GiB)" in found.vllm_error
    assert "(0.995, 99.5 GiB)" in found.vllm_error


def test_a_budget_that_is_just_free_does_not_fail() -> None:
    """99 of 99 GiB is enough."""
    assert size(request(gpu_memory_utilization=0.99)).ok


def test_groups_of_cards_have_less_free() -> None:
    """NCCL holds memory before the check: 98.5 GiB fail on two cards."""
    paired = request(layout=Layout(tensor_parallel_size=2), gpu_memory_utilization=0.985)
    assert reason(paired).code == "free_memory_below_request"
    assert size(request(gpu_memory_utilization=0.985)).ok


def test_weights_larger_than_the_card_do_not_fit() -> None:
    """What is missing is named in bytes."""
    found = reason(request(release=release(weights=weights(120.0))))
    assert found.code == "weights_do_not_fit"
    numbers = dict(found.numbers)
    assert numbers["weights_bytes"] == 120 * GIB
    assert numbers["free_bytes"] == 99 * GIB
    assert numbers["missing_bytes"] == 21 * GIB


def test_weights_that_leave_nothing_of_the_budget_fail_later() -> None:
    """They load, and then vLLM finds no memory for blocks."""
    found = reason(request(release=release(weights=weights(95.0)), max_num_seqs=1))
    assert found.code == "no_memory_for_kv_cache"
    numbers = dict(found.numbers)
    assert numbers["available_bytes"] == -int(numbers["missing_bytes"])
    assert int(numbers["missing_bytes"]) > 3 * GIB
    assert found.vllm_error.startswith("No available memory for the cache blocks.")


def test_a_request_larger_than_the_cache_names_the_longest_that_fits() -> None:
    """kv_cache_too_small carries what is needed, what there is, and the length that fits."""
    found = reason(request(release=release(weights=weights(88.0)), max_model_len=131072))
    assert found.code == "kv_cache_too_small"
    assert found.estimated_max_model_len is not None
    longest = found.estimated_max_model_len
    assert 0 < longest < 131072
    assert size(request(release=release(weights=weights(88.0)), max_model_len=longest)).ok
    assert str(longest) in found.vllm_error


def test_a_given_cache_that_does_not_lie_beside_the_weights_fails() -> None:
    """vLLM would run out when it allocates: 95 GiB beside 10 of weights."""
    heavy = release(weights=weights(10.0))
    found = reason(request(release=heavy, kv_cache_memory_bytes=95 * GIB))
    assert found.code == "no_memory_for_kv_cache"
    numbers = dict(found.numbers)
    assert numbers["kv_cache_memory_bytes"] == 95 * GIB
    assert 0 < int(numbers["available_bytes"]) < 89 * GIB
    assert int(numbers["missing_bytes"]) == 95 * GIB - int(numbers["available_bytes"])


def test_a_given_cache_may_be_larger_than_the_budget() -> None:
    """--kv-cache-memory-bytes ignores utilization: 80 GiB fit beside 10 at utilization 0.5."""
    heavy = release(weights=weights(10.0))
    asked = request(release=heavy, kv_cache_memory_bytes=80 * GIB, gpu_memory_utilization=0.5)
    assert size(asked).ok


def test_a_given_cache_needs_a_free_budget_all_the_same() -> None:
    """The check at start does not know of the given cache."""
    asked = request(kv_cache_memory_bytes=GIB, gpu_memory_utilization=0.995)
    assert reason(asked).code == "free_memory_below_request"


def test_graphs_captured_after_sizing_can_overrun() -> None:
    """Up to 0.19 they live outside the budget: 3 GiB do not fit into what 0.97 leaves."""
    graphs = runner(graph_base_bytes=exactly(3 * GIB))
    own = {"runners": MappingProxyType({"V1": graphs, "V2": graphs})}
    asked = request(release=release("0.19.1", **own), gpu_memory_utilization=0.97)
    found = reason(asked)
    assert found.code == "refused_by_vllm"
    numbers = dict(found.numbers)
    assert numbers["left_bytes"] == 2 * GIB
    assert int(numbers["cudagraph_bytes"]) > 3 * GIB
    eager = request(
        release=release("0.19.1", **own), gpu_memory_utilization=0.97, enforce_eager=True
    )
    assert size(eager).ok
    assert size(request(release=release("0.20.0", **own), gpu_memory_utilization=0.97)).ok


def test_with_the_available_memory_given_nothing_else_is_asked() -> None:
    """Weights may be larger than the card: only the block arithmetic counts."""
    asked = request(
        release=release(weights=weights(500.0)),
        measured=Measured(available_kv_cache_memory_bytes=GIB),
    )
    assert size(asked).ok


def test_a_card_of_unknown_memory_is_an_answer() -> None:
    """Neither driver nor vLLM's figure: the code says so, and a given memory helps."""
    unknown = card(total_gib=None, driver_mib=None)
    assert reason(request(gpu=unknown)).code == "gpu_memory_unknown"
    assert size(request(gpu=unknown, gpu_total_memory_bytes=50 * GIB)).ok
    assert size(request(gpu=unknown, kv_cache_memory_bytes=GIB)).ok


@pytest.mark.parametrize("stages", [1, 2])
def test_the_tightest_stage_decides(stages: int) -> None:
    """With pipeline stages the one with least memory left fails the start."""
    model = dense(layers=dense().layers * 2)
    asked = request(
        model=model,
        layout=Layout(pipeline_parallel_size=stages),
        release=release(weights=weights(100.0 * stages)),
    )
    assert reason(asked).code in {"weights_do_not_fit", "no_memory_for_kv_cache"}


STATE = StateSpec("gated_delta_net", 4, 16, 128, 8, 128)
HYBRID = dense(layers=(LayerSpec(STATE), *dense().layers))


def test_more_sequences_than_states_cannot_capture_graphs() -> None:
    """Each decoding sequence of a recurrent model needs a block: 500,000 do not have one."""
    asked = request(model=HYBRID, max_num_seqs=500_000, max_num_batched_tokens=500_000)
    found = reason(asked)
    assert found.code == "mamba_blocks_below_max_num_seqs"
    numbers = dict(found.numbers)
    blocks = numbers["num_gpu_blocks"]
    assert numbers["max_num_seqs"] == 500_000
    assert 0 < int(blocks) < 500_000
    assert f"Please lower max_num_seqs to at most {blocks}" in found.vllm_error
    assert size(request(model=HYBRID, max_num_seqs=int(blocks), max_num_batched_tokens=500_000)).ok


def test_states_are_enough_without_graphs_and_in_releases_that_cut_them_down() -> None:
    """Eager starts, models without states, older releases and given memory pass."""
    many = {"max_num_seqs": 500_000, "max_num_batched_tokens": 500_000}
    assert size(request(model=HYBRID, **many, enforce_eager=True)).ok
    assert size(request(**many, num_gpu_blocks_override=500)).ok
    assert size(request(model=HYBRID, **many, release=release("0.16.0"))).ok
    given = Measured(available_kv_cache_memory_bytes=8 * GIB)
    assert size(request(model=HYBRID, **many, measured=given)).ok
