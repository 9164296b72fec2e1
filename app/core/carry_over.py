"""What a measured start says about another one: rules for every term, and how sure they are.

A term that vLLM measured replaces its estimate on the same server. When something changes, the
estimates of both servers say by how much the term changes with it, and the measurement says how far
the estimates are off on this machine:

    weights            the same files: times what they shrink or grow by (layout, drafts, adapters);
                       other files or another model: the estimate
    peak_activation    times what the estimate grows by (batched tokens, sequences, layout, model)
    non_torch          plus what the estimate grows by; buffers that stay are part of it
    cudagraph          times what the estimate grows by; none when the graphs are switched off
    available memory   only on the same server: it is what all the others leave

Context, KV cache dtype, block size and utilization change no term. A card changes none either, but
one that shares the host's memory takes the estimate. Between releases only the weights carry over,
because what the profile run measures and how it is counted changed with almost every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.core.request import Measured, SizingRequest
from app.core.result import MemoryTerm

Terms = Mapping[str, MemoryTerm]

NOTHING_MEASURED = Measured()


def carry_over(
    measured: Measured, there: SizingRequest, here: SizingRequest, then: Terms, now: Terms
) -> Measured:
    """Return what was measured `there` as far as it holds `here`.

    `then` and `now` are the estimates of both, nothing taken as measured.
    """
    if _server(there) == _server(here):
        return replace(measured, taken_on=None)
    if not then or not now:
        return NOTHING_MEASURED
    weights = _weights(measured, there, here, then, now)
    same_memory = there.gpu.integrated_memory == here.gpu.integrated_memory
    if there.release is not here.release or not same_memory:
        return Measured(weights_bytes=weights, is_carried_over=True)
    return Measured(
        weights_bytes=weights,
        peak_activation_bytes=_times(
            measured.peak_activation_bytes, then["peak_activation"], now["peak_activation"]
        ),
        non_torch_bytes=_non_torch(measured.non_torch_bytes, then, now),
        cudagraph_bytes=_times(
            measured.cudagraph_bytes, then["cudagraph_estimate"], now["cudagraph_estimate"]
        ),
        is_carried_over=True,
    )


def _server(request: SizingRequest) -> SizingRequest:
    """Return one copy of a server, without what was measured."""
    return replace(request, measured=NOTHING_MEASURED, layout=replace(request.layout, replicas=1))


def _weights(
    measured: Measured, there: SizingRequest, here: SizingRequest, then: Terms, now: Terms
) -> int | None:
    same_files = there.model is here.model and there.checkpoint == here.checkpoint
    if not same_files:
        return None
    return _times(measured.weights_bytes, then["weights"], now["weights"])


def _times(measured: int | None, then: MemoryTerm, now: MemoryTerm) -> int | None:
    """Scale a measured term as its estimate scales; without an estimate there is no scale."""
    if measured is None or now.likely == then.likely:
        return measured
    if not then.likely:
        return None
    return round(measured * now.likely / then.likely)


def _non_torch(measured: int | None, then: Terms, now: Terms) -> int | None:
    if measured is None:
        return None
    kept = ("non_torch", "persistent_buffers")
    return max(0, measured + sum(now[code].likely - then[code].likely for code in kept))
