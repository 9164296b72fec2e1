"""Predicted against printed, term by term, with the likely cause where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from app.core.checkpoint import Checkpoint
from app.core.reasons import Number
from app.core.releases import Release
from app.core.request import Measured, SizingRequest
from app.core.result import MemoryTerm, SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.readings.arithmetic_causes import arithmetic_cause
from app.readings.calibrate import available_bytes, counts_graphs
from app.readings.memory_causes import Cause, memory_cause, weights_cause
from app.readings.observation import Observation, Observed

Unit = Literal["bytes", "tokens", "requests"]

# Printed GiB have two decimals.
_ROUNDING_BYTES: Final = 0.006 * GIB


@dataclass(frozen=True, slots=True)
class ComparedTerm:
    """One term.

    term          `total_memory`, `weights`, `peak_activation`, `non_torch`, `cudagraph_estimate`,
                  `available_kv_cache`; then, reckoned from the printed memory,
                  `kv_cache_size_tokens` and `max_concurrency`
    low, high     ends of the prediction; equal where it is exact
    likely_cause  a code with its numbers, None where printed and predicted agree
    """

    term: str
    unit: Unit
    predicted: float
    low: float
    high: float
    printed: float
    likely_cause: Cause | None = None

    @property
    def difference(self) -> float:
        """Printed less predicted."""
        return self.printed - self.predicted

    @property
    def agrees(self) -> bool:
        """Whether the printed figure lies in the range, to its rounding."""
        slack = _ROUNDING_BYTES if self.unit == "bytes" else 0.006
        return self.low - slack <= self.printed <= self.high + slack


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What the server may be other than the log lets one think: for causes that can be tried."""

    checkpoints: Sequence[Checkpoint] = ()
    releases: Sequence[Release] = ()


def compare(
    start: Observation, request: SizingRequest, others: Alternatives
) -> tuple[ComparedTerm, ...]:
    """Compare a start with the estimate of its server, nothing taken as measured."""
    request = replace(request, measured=Measured())
    terms = (*_memory_terms(start, request, others.checkpoints),)
    split = next((term for term in terms if _gives_away_split(term)), None)
    if split is not None and split.likely_cause is not None:
        # What the weights give away counts for everything else.
        width = int(split.likely_cause.numbers["tensor_parallel_size"])
        request = replace(request, layout=replace(request.layout, tensor_parallel_size=width))
        again = _memory_terms(start, request, others.checkpoints)
        terms = tuple(split if term.term == split.term else term for term in again)
    return (*terms, *_available(start, size(request), terms), *_arithmetic(start, request, others))


def _gives_away_split(term: ComparedTerm) -> bool:
    return term.likely_cause is not None and term.likely_cause.code == "split_not_stated"


def _memory_terms(
    start: Observation, request: SizingRequest, checkpoints: Sequence[Checkpoint]
) -> Iterator[ComparedTerm]:
    observed, result = start.observed, size(request)
    yield from _total(observed, request)
    estimates = {term.code: term for term in result.memory}
    if not estimates:
        return
    for code, printed, codes in _printed(observed, result):
        compared = _summed(code, printed, [estimates[each] for each in codes])
        if compared.agrees:
            yield compared
            continue
        cause: Cause | None
        if code == "weights":
            cause = weights_cause(start, request, compared.printed, checkpoints)
        else:
            too_much = compared.printed > compared.high
            cause = memory_cause(code, start, result, too_much=too_much)
        yield replace(compared, likely_cause=cause)


def _total(observed: Observed, request: SizingRequest) -> Iterator[ComparedTerm]:
    known = request.gpu.total_memory_bytes
    if observed.total_memory_gib is None or known is None:
        return
    printed = observed.total_memory_gib * GIB
    # Drivers differ by a tenth of a GiB in what they keep to themselves.
    compared = ComparedTerm("total_memory", "bytes", known, 0.995 * known, 1.005 * known, printed)
    cause = None if compared.agrees else Cause("other_card_or_driver")
    yield replace(compared, likely_cause=cause)


def _printed(
    observed: Observed, result: SizingResult
) -> Iterator[tuple[str, float, tuple[str, ...]]]:
    """Printed terms in GiB, each with the estimates that it holds together."""
    buffers_are_consumed = observed.non_torch_gib is None and observed.consumed_gib is not None
    weights = observed.weights_gib
    if weights is not None:
        yield "weights", weights, ("weights",)
    peak = observed.peak_activation_gib
    if peak is not None:
        kept = () if buffers_are_consumed else ("persistent_buffers",)
        yield "peak_activation", peak, ("peak_activation", *kept)
    if observed.non_torch_gib is not None:
        yield "non_torch", observed.non_torch_gib, ("non_torch",)
    elif observed.consumed_gib is not None and weights is not None:
        yield "non_torch", observed.consumed_gib - weights, ("non_torch", "persistent_buffers")
    estimate = observed.cudagraph_estimate_gib
    if estimate is not None and counts_graphs(observed, result):
        yield "cudagraph_estimate", estimate, ("cudagraph_estimate",)


def _summed(code: str, printed_gib: float, estimates: Sequence[MemoryTerm]) -> ComparedTerm:
    return ComparedTerm(
        term=code,
        unit="bytes",
        predicted=sum(each.likely for each in estimates),
        low=sum(each.low for each in estimates),
        high=sum(each.high for each in estimates),
        printed=printed_gib * GIB,
    )


def _available(
    start: Observation, result: SizingResult, terms: Sequence[ComparedTerm]
) -> Iterator[ComparedTerm]:
    printed, expected = start.observed.available_kv_cache_gib, result.available_kv_cache_memory
    if printed is None or expected is None or result.request.given_cache_bytes is not None:
        return
    compared = ComparedTerm(
        "available_kv_cache", "bytes", expected.likely, expected.low, expected.high, printed * GIB
    )
    if compared.agrees:
        yield compared
        return
    apart = [term for term in terms if not term.agrees]
    cause: Cause | None
    if apart:
        largest = max(apart, key=lambda term: abs(term.difference))
        cause = Cause("follows_from_term", {"term": largest.term})
    else:
        too_much = compared.printed > compared.high
        cause = memory_cause("available_kv_cache", start, result, too_much=too_much)
    yield replace(compared, likely_cause=cause)


def _arithmetic(
    start: Observation, request: SizingRequest, others: Alternatives
) -> Iterator[ComparedTerm]:
    """Tokens and concurrency that follow from the memory the log prints."""
    observed = start.observed
    available = available_bytes(replace(observed, num_gpu_blocks=None), size(request))
    gib = observed.available_kv_cache_gib or observed.reserved_kv_cache_gib
    printed_bytes = round(gib * GIB) if gib else available
    if not printed_bytes or printed_bytes <= 0 or observed.available_kv_cache_gib is None:
        return
    low, likely, high = (
        size(given(request, printed_bytes + slack)).cache
        for slack in (-_ROUNDING_BYTES, 0, _ROUNDING_BYTES)
    )
    if low is None or likely is None or high is None:
        return
    figures: Mapping[str, tuple[Unit, float | None, float, float, float]] = {
        "kv_cache_size_tokens": (
            "tokens", observed.kv_cache_size_tokens,
            likely.kv_cache_size_tokens, low.kv_cache_size_tokens, high.kv_cache_size_tokens,
        ),
        "max_concurrency": (
            "requests",
            observed.max_concurrency
            if observed.max_concurrency_len == likely.max_model_len else None,
            likely.max_concurrency, low.max_concurrency, high.max_concurrency,
        ),
    }  # fmt: skip
    cause: Cause | None = None
    for term, (unit, printed, predicted, lowest, highest) in figures.items():
        if printed is None:
            continue
        compared = ComparedTerm(term, unit, predicted, lowest, highest, printed)
        if not compared.agrees and cause is None:
            numbers: dict[str, Number] = {"printed": printed}
            cause = arithmetic_cause(
                term, numbers, start, given(request, printed_bytes), others.releases
            )
        yield replace(compared, likely_cause=None if compared.agrees else cause)


def given(request: SizingRequest, available: float) -> SizingRequest:
    """Ask for the block arithmetic alone, from a memory that is known."""
    measured = Measured(available_kv_cache_memory_bytes=max(1, int(available)))
    return replace(request, measured=measured)
