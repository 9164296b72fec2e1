"""Up to four sizings side by side: what was asked, what comes of it, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.layout import Layout
from app.core.reasons import Reason
from app.core.result import SizingResult
from app.wizard.sizing_request import Prepared

Value = str | float | bool | Layout | tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Side:
    """One sizing: its name, its result, and where it stands; `reason` where it does not start."""

    name: str
    prepared: Prepared
    result: SizingResult
    href: str

    @property
    def reason(self) -> Reason | None:
        """Why vLLM would not start."""
        return self.result.reason


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One line: a code, and a value for each side. `best` is the column of the largest result."""

    code: str
    values: tuple[Value, ...]
    best: int | None = None

    @property
    def differs(self) -> bool:
        """Whether not all sides agree."""
        return any(value != self.values[0] for value in self.values)


@dataclass(frozen=True, slots=True)
class Compared:
    """The page: inputs and results of every side."""

    sides: tuple[Side, ...]
    inputs: tuple[ComparedRow, ...]
    results: tuple[ComparedRow, ...]


def _resolved(name: str) -> Callable[[SizingResult], Value]:
    def read(result: SizingResult) -> Value:
        value: Value = getattr(result.resolved, name) if result.resolved else None
        return value

    return read


def _concurrency(result: SizingResult) -> Value:
    engines = result.request.layout.engines
    if result.cache is None:
        return None
    if result.concurrency_range is None:
        return (result.cache.max_concurrency * engines,) * 2
    return result.concurrency_range.low * engines, result.concurrency_range.high * engines


def _cache_bytes(result: SizingResult) -> Value:
    """Memory for the cache of a card; None where the weights leave none."""
    available = result.available_kv_cache_memory
    return None if available is None or available.likely < 0 else available.likely


def _power(result: SizingResult) -> Value:
    watts = result.request.gpu.tdp_watts
    return None if watts is None else watts * result.request.layout.cards


_INPUTS: Final[tuple[tuple[str, Callable[[SizingResult], Value]], ...]] = (
    ("checkpoint", lambda result: result.request.checkpoint.hf_id),
    ("cache_dtype", _resolved("stored_cache_dtype")),
    ("gpu", lambda result: result.request.gpu.name),
    ("layout", lambda result: result.request.layout),
    ("cards", lambda result: result.request.layout.cards),
    ("max_model_len", _resolved("max_model_len")),
    ("vllm_version", lambda result: result.request.release.version),
    ("gpu_memory_utilization", _resolved("gpu_memory_utilization")),
    ("kv_cache_memory_bytes", _resolved("kv_cache_memory_bytes")),
    ("max_num_batched_tokens", _resolved("max_num_batched_tokens")),
    ("max_num_seqs", _resolved("max_num_seqs")),
    ("enforce_eager", _resolved("enforce_eager")),
)
_RESULTS: Final[tuple[tuple[str, Callable[[SizingResult], Value]], ...]] = (
    ("requests", lambda result: result.verdict_requests),
    ("requests_per_card", lambda result: result.verdict_requests / result.request.layout.cards),
    ("planned", lambda result: result.planning.requests if result.planning else None),
    ("concurrency", _concurrency),
    (
        "tokens",
        lambda result: (
            result.cache.kv_cache_size_tokens * result.request.layout.engines
            if result.cache
            else None
        ),
    ),
    ("weights_bytes", lambda result: result.weights_bytes_per_rank),
    ("cache_bytes", _cache_bytes),
    ("watts", _power),
)
_MORE_IS_BETTER: Final = frozenset({"requests", "requests_per_card", "planned", "tokens"})


def compared(sides: Sequence[Side]) -> Compared:
    """Lay sizings side by side; rows that nobody set and that all share are left out."""
    results = [side.result for side in sides]
    inputs = [
        ComparedRow("model", tuple(side.name for side in sides)),
        *(_row(code, read, results) for code, read in _INPUTS),
    ]
    quiet = {"kv_cache_memory_bytes", "enforce_eager"}
    return Compared(
        tuple(sides),
        tuple(row for row in inputs if row.differs or row.code not in quiet),
        tuple(_row(code, read, results) for code, read in _RESULTS),
    )


def _row(
    code: str, read: Callable[[SizingResult], Value], results: Sequence[SizingResult]
) -> ComparedRow:
    values = tuple(read(result) for result in results)
    best = None
    if code in _MORE_IS_BETTER:
        numbers = [value if isinstance(value, int | float) else -1.0 for value in values]
        if numbers.count(max(numbers)) == 1:
            best = numbers.index(max(numbers))
    return ComparedRow(code, values, best)
