"""What an answer takes for granted, as codes with values."""

from __future__ import annotations

from collections.abc import Iterator

from app.core.budget import CardMemory
from app.core.gpu_spec import GpuSpec
from app.core.memory import Start, profiles_encoder
from app.core.request import SizingRequest
from app.core.result import Assumption


def given_assumptions(request: SizingRequest) -> Iterator[Assumption]:
    """Name what holds whether or not memory is estimated."""
    yield from _of_card(request.gpu)
    layout = request.layout
    if request.release.memory is None and request.given_cache_bytes is None:
        yield Assumption(
            "memory_estimate_not_offered", (("vllm_version", request.release.version),)
        )
        if request.other_processes_bytes:
            yield _others(request, "other_processes_charged")
    if request.engine_args.gpu_memory_utilization is not None:
        yield Assumption(
            "planning_uses_given_utilization",
            (("gpu_memory_utilization", request.engine_args.gpu_memory_utilization),),
        )
    spread = layout.enable_expert_parallel and layout.data_parallel_size > 1
    if spread and request.model.num_experts:
        yield Assumption(
            "experts_spread_over_engines", (("data_parallel_size", layout.data_parallel_size),)
        )
    if request.engine_args.kv_cache_memory_bytes is not None:
        yield Assumption(
            "utilization_ignored_for_cache",
            (("kv_cache_memory_bytes", request.engine_args.kv_cache_memory_bytes),),
        )
    measured = request.measured
    terms = (measured.peak_activation_bytes, measured.non_torch_bytes)
    if measured.is_carried_over:
        yield Assumption("terms_carried_over")
    elif None not in terms:
        yield Assumption("terms_measured")
    if request.measured.available_kv_cache_memory_bytes is not None:
        yield Assumption(
            "available_memory_given",
            (("available_bytes", request.measured.available_kv_cache_memory_bytes),),
        )


def estimate_assumptions(start: Start, card: CardMemory) -> Iterator[Assumption]:
    """Name what the estimate of one start takes for granted."""
    request, coefficients = start.request, start.coefficients
    if request.other_processes_bytes:
        yield _others(request, "other_processes_beside_budget")
    if card.from_driver:
        yield Assumption(
            "total_memory_from_driver",
            (
                ("low_bytes", int(card.total.low)),
                ("likely_bytes", int(card.total.likely)),
                ("high_bytes", int(card.total.high)),
            ),
        )
    if request.release.version not in coefficients.observed_releases:
        yield Assumption(
            "release_extrapolated",
            (
                ("vllm_version", request.release.version),
                ("observed_from", coefficients.observed_releases[0]),
                ("observed_to", coefficients.observed_releases[-1]),
            ),
        )
    if coefficients.cold_compile.high and not start.resolved.enforce_eager:
        yield Assumption("compile_cache_empty")
    sampler = start.runner.sampler_bytes_per_logit
    if sampler.low < sampler.likely / 2:
        yield Assumption("sampler_without_flashinfer", (("bytes_per_logit", sampler.likely),))
    if profiles_encoder(request.model, start.resolved):
        yield Assumption("encoder_profiled")
    if request.gpu.integrated_memory:
        yield Assumption("memory_shared_with_host")
    if not request.release.cudagraph_estimate_subtracted and not start.resolved.enforce_eager:
        yield Assumption(
            "cudagraphs_outside_budget",
            (("cudagraph_bytes", int(start.captured_graphs().likely)),),
        )


def _of_card(gpu: GpuSpec) -> Iterator[Assumption]:
    if gpu.mig_of:
        yield Assumption("sliced_card", (("mig_instances", gpu.mig_instances),))
    if gpu.driver_memory_bytes is None:
        yield Assumption("driver_memory_unknown")


def _others(request: SizingRequest, code: str) -> Assumption:
    values = (
        ("vllm_version", request.release.version),
        ("other_processes_bytes", request.other_processes_bytes),
    )
    return Assumption(code, values)
