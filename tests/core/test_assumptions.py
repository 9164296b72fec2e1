"""What an answer takes for granted is said, and nothing else is."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from app.core.coefficients import Bounds, exactly
from app.core.layout import Layout
from app.core.reasons import Number
from app.core.request import Measured, SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from tests.core.memory_case import card, dense, release, request, runner

EXPERTS = dense(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=512)


def said(asked: SizingRequest) -> dict[str, dict[str, Number]]:
    """Return the assumptions of an answer by code."""
    return {each.code: dict(each.values) for each in size(asked).assumptions}


def test_a_plain_request_of_an_observed_release_takes_nothing_for_granted() -> None:
    """Card, memory and release known, nothing compiled: an empty list."""
    assert said(request(release=release("0.31.0"))) == {}


def test_a_release_nobody_observed_is_extrapolated() -> None:
    """The observed span is named."""
    assert said(request())["release_extrapolated"] == {
        "vllm_version": "0.32.0",
        "observed_from": "0.11.0",
        "observed_to": "0.31.0",
    }


@pytest.mark.parametrize(
    ("code", "values", "changes"),
    [
        ("driver_memory_unknown", {}, {"gpu": card(driver_mib=None)}),
        (
            "total_memory_from_driver",
            {"low_bytes": 98 * GIB, "likely_bytes": 100 * GIB, "high_bytes": 101 * GIB},
            {"gpu": card(total_gib=None)},
        ),
        (
            "planning_uses_given_utilization",
            {"gpu_memory_utilization": 0.8},
            {"gpu_memory_utilization": 0.8},
        ),
        (
            "utilization_ignored_for_cache",
            {"kv_cache_memory_bytes": GIB},
            {"kv_cache_memory_bytes": GIB},
        ),
        (
            "available_memory_given",
            {"available_bytes": GIB},
            {"measured": Measured(available_kv_cache_memory_bytes=GIB)},
        ),
        (
            "experts_spread_over_engines",
            {"data_parallel_size": 2},
            {
                "model": EXPERTS,
                "layout": Layout(data_parallel_size=2, enable_expert_parallel=True),
            },
        ),
        ("encoder_profiled", {}, {"model": dense(multimodal=True)}),
        (
            "memory_shared_with_host",
            {},
            {"gpu": replace(card(), integrated_memory=True)},
        ),
        ("compile_cache_empty", {}, {"release": release("0.31.0", cold_compile=exactly(1.0))}),
    ],
)
def test_each_assumption_is_said_with_its_values(
    code: str, values: dict[str, Number], changes: dict[str, object]
) -> None:
    """What was assumed, and the number that was assumed."""
    assert said(request(**changes))[code] == values
    assert code not in said(request(release=release("0.31.0")))


def test_experts_stay_together_without_expert_parallelism() -> None:
    """Plain data parallelism copies the model: nothing is spread."""
    plain = request(model=EXPERTS, layout=Layout(data_parallel_size=2))
    assert "experts_spread_over_engines" not in said(plain)
    alone = request(model=EXPERTS, layout=Layout(enable_expert_parallel=True))
    assert "experts_spread_over_engines" not in said(alone)
    layout = Layout(data_parallel_size=2, enable_expert_parallel=True)
    assert "experts_spread_over_engines" not in said(request(layout=layout))


def test_an_eager_start_compiles_nothing() -> None:
    """No compile cache is assumed with --enforce-eager."""
    cold = release(cold_compile=exactly(1.0))
    assert "compile_cache_empty" not in said(request(release=cold, enforce_eager=True))


def test_two_samplers_are_possible_where_the_low_end_is_far_away() -> None:
    """Up to 0.11.0 it depends on FlashInfer; the cautious sampler is assumed."""
    two = runner(sampler_bytes_per_logit=Bounds(16.0, 38.0, 38.0))
    own = release("0.11.0", runners=MappingProxyType({"V1": two, "V2": two}))
    assert said(request(release=own))["sampler_without_flashinfer"] == {"bytes_per_logit": 38.0}


def test_graphs_outside_the_budget_are_said_up_to_0_19() -> None:
    """With the amount that must fit into what utilization leaves."""
    values = said(request(release=release("0.19.1")))["cudagraphs_outside_budget"]
    assert int(values["cudagraph_bytes"]) > 0
    eager = request(release=release("0.19.1"), enforce_eager=True)
    assert "cudagraphs_outside_budget" not in said(eager)


def test_a_pasted_memory_needs_no_estimate() -> None:
    """An old release with given memory assumes the memory, not a missing estimate."""
    old = replace(release("0.8.5"), memory=None)
    for changes in (
        {"measured": Measured(available_kv_cache_memory_bytes=GIB)},
        {"kv_cache_memory_bytes": GIB},
    ):
        assert "memory_estimate_not_offered" not in said(request(release=old, **changes))
    assert said(request(release=old))["memory_estimate_not_offered"] == {"vllm_version": "0.8.5"}
