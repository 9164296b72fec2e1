"""Why tokens or requests do not follow from the printed memory: what meets them when tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from app.core.engine import SpeculativeConfig
from app.core.reasons import Number
from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from app.readings.memory_causes import Cause
from app.readings.observation import Observation

KV_CACHE_DTYPES: Final = ("bfloat16", "fp8", "nvfp4")
_MOST_RELEASES: Final = 60
_ROUNDING_GIB: Final = 0.006


def arithmetic_cause(
    term: str,
    numbers: Mapping[str, Number],
    start: Observation,
    request: SizingRequest,
    releases: Sequence[Release],
) -> Cause:
    """Find the change after which the printed memory gives the printed figure.

    `request` has the printed memory as given. Codes: `hybrid_manager_off`, `hybrid_manager_on`,
    `cache_dtype` (kv_cache_dtype), `draft_layers`, `context_parallel`
    (decode_context_parallel_size), `other_release` (vllm_version), `padding_layers`
    (padding_layers), `arithmetic_unexplained`.
    """
    printed = float(numbers["printed"])
    available = request.given_cache_bytes or 1
    slack = max(0.002, _ROUNDING_GIB * GIB / available)
    for cause, trial in _trials(start, request, releases):
        cache = size(trial).cache
        figure = getattr(cache, term, None)
        if figure is not None and abs(figure - printed) <= slack * printed:
            return cause
    if start.observed.padding_layers:
        return Cause("padding_layers", {"padding_layers": start.observed.padding_layers})
    return Cause("arithmetic_unexplained")


def _trials(
    start: Observation, request: SizingRequest, releases: Sequence[Release]
) -> Iterator[tuple[Cause, SizingRequest]]:
    """Try what the log leaves open, what it hints at before anything else."""
    args, factor = request.engine_args, start.observed.context_parallel_factor
    if factor is not None:
        yield _divided(request, factor)
    off = args.disable_hybrid_kv_cache_manager
    code = "hybrid_manager_on" if off else "hybrid_manager_off"
    switched = args.with_flag("disable_hybrid_kv_cache_manager", not off)
    yield Cause(code), replace(request, engine_args=switched)
    stated = args.kv_cache_dtype != "auto"
    for dtype in () if stated else KV_CACHE_DTYPES:
        cause = Cause("cache_dtype", {"kv_cache_dtype": dtype})
        yield cause, replace(request, engine_args=args.with_flag("kv_cache_dtype", dtype))
    if request.model.mtp_layers and args.speculative_config is None:
        drafts = args.with_flag("speculative_config", SpeculativeConfig("mtp", 1))
        yield Cause("draft_layers"), replace(request, engine_args=drafts)
    for parts in () if start.arguments_shown else (2, 4, 8):
        if parts != request.layout.decode_context_parallel_size:
            yield _divided(request, parts)
    for release in tuple(reversed(releases))[:_MOST_RELEASES]:
        if release is not request.release:
            cause = Cause("other_release", {"vllm_version": release.version})
            yield cause, replace(request, release=release)


def _divided(request: SizingRequest, parts: int) -> tuple[Cause, SizingRequest]:
    layout = replace(request.layout, decode_context_parallel_size=parts)
    cause = Cause("context_parallel", {"decode_context_parallel_size": parts})
    return cause, replace(request, layout=layout)
