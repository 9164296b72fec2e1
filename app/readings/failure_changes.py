"""What to change after a start that failed although the sizing would have let it pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size
from app.readings.observation import Failure, Observation

Change = Mapping[str, Number | bool]

_MARGIN_GIB: Final = 0.1
_LESS_UTILIZATION: Final = 0.05
_LEAST_UTILIZATION: Final = 0.1
_FEWER_SEQUENCES: Final = (256, 64)
_OUT_OF_MEMORY: Final = frozenset({
    "out_of_memory", "sampler_warmup_out_of_memory", "pooler_warmup_out_of_memory",
})  # fmt: skip
_NOT_FREE: Final = frozenset({"free_memory_below_request", "free_memory_below_engine_budget"})


def failure_changes(
    start: Observation, failure: Failure, request: SizingRequest
) -> Iterator[tuple[Change, SizingResult]]:
    """Try the changes that answer this failure; those that are expected to start are given.

    None for a failure that no flag mends (another process, a fault of the driver).
    """
    for change in _changes(start, failure, request):
        args, layout = request.engine_args, request.layout
        for name, value in change.items():
            if name == "tensor_parallel_size":
                layout = replace(layout, tensor_parallel_size=int(value))
            else:
                args = args.with_flag(name, value)
        result = size(replace(request, engine_args=args, layout=layout))
        if result.cache is not None and result.cache.max_concurrency >= 1:
            yield change, result


def _changes(start: Observation, failure: Failure, request: SizingRequest) -> Iterator[Change]:
    numbers = failure.numbers
    if failure.code in _NOT_FREE:
        yield from _what_is_free(numbers)
    elif failure.code in _OUT_OF_MEMORY:
        yield from _less_at_once(start, request)
    elif failure.code == "kv_cache_too_small":
        longest = numbers.get("estimated_max_model_len")
        if isinstance(longest, int):
            yield {"max_model_len": longest}
    elif failure.code == "context_too_long":
        derived = numbers.get("derived_max_model_len")
        if isinstance(derived, int):
            yield {"max_model_len": derived}
    elif failure.code == "mamba_blocks_below_max_num_seqs":
        blocks = numbers.get("mamba_blocks")
        if isinstance(blocks, int) and blocks > 0:
            yield {"max_num_seqs": blocks}
    elif failure.code == "heads_not_divisible":
        width = request.layout.tensor_parallel_size
        yield from ({"tensor_parallel_size": size} for size in (1, 2, 4, 8) if size != width)


def _what_is_free(numbers: Mapping[str, Number]) -> Iterator[Change]:
    """A budget that is free, rounded down to a hundredth."""
    free, total = numbers.get("free_memory_gib"), numbers.get("total_memory_gib")
    if isinstance(free, float) and isinstance(total, float) and total > 0:
        share = math.floor(100 * (free - _MARGIN_GIB) / total) / 100
        if share >= _LEAST_UTILIZATION:
            yield {"gpu_memory_utilization": share}


def _less_at_once(start: Observation, request: SizingRequest) -> Iterator[Change]:
    resolved = size(request).resolved
    if resolved is None:
        return
    for sequences in _FEWER_SEQUENCES:
        if sequences < resolved.max_num_seqs:
            yield {"max_num_seqs": sequences}
    lower = round(resolved.gpu_memory_utilization - _LESS_UTILIZATION, 2)
    if lower >= _LEAST_UTILIZATION:
        yield {"gpu_memory_utilization": lower}
    if not resolved.enforce_eager and not start.engine_args.get("enforce_eager"):
        yield {"enforce_eager": True}
