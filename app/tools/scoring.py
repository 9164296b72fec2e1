"""Scores of predicted against printed starts, and what they add up to."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.catalog.accuracy import AccuracySummary
from app.core.coefficients import MemoryCoefficients
from app.core.sizing import SizingResult, size
from app.core.units import GIB
from app.tools.starts import Start

TIGHT_CACHE_GIB = 12.0
SMALLEST_CACHE_GIB = 0.5
TOO_MUCH = 0.1


@dataclass(frozen=True, slots=True)
class Score:
    """One start, predicted and printed. GiB, tokens, ratios; None where the log shows nothing."""

    id: str
    source_group: str
    weights_gib: float | None
    weights_printed_gib: float | None
    available_gib: float | None
    available_low_gib: float | None
    available_high_gib: float | None
    available_printed_gib: float | None
    tokens: int | None
    tokens_printed: int | None
    concurrency: float | None
    concurrency_printed: float | None
    fails: bool
    failed: bool
    reason: str | None
    widest_term: str | None

    @property
    def available_error_gib(self) -> float | None:
        """Predicted minus printed: positive is promised too much."""
        if self.available_gib is None or self.available_printed_gib is None:
            return None
        return self.available_gib - self.available_printed_gib

    @property
    def relative_error(self) -> float | None:
        """Error of the memory over what was printed, where at least half a GiB was."""
        error, printed = self.available_error_gib, self.available_printed_gib
        if error is None or printed is None or printed < SMALLEST_CACHE_GIB:
            return None
        return error / printed

    @property
    def tokens_error(self) -> float | None:
        """Relative error of the tokens."""
        if self.tokens is None or not self.tokens_printed:
            return None
        return self.tokens / self.tokens_printed - 1

    @property
    def covered(self) -> bool | None:
        """Whether the printed memory lies within the range."""
        low, high, printed = (
            self.available_low_gib,
            self.available_high_gib,
            self.available_printed_gib,
        )
        if low is None or high is None or printed is None:
            return None
        return low <= printed <= high


def score(
    start: Start, coefficients: MemoryCoefficients | None = None, *, logged_weights: bool
) -> Score:
    """Size one start and put the prediction beside what was printed."""
    request = start.asked(coefficients, logged_weights=logged_weights)
    result = size(request)
    printed = start.printed
    available = result.available_kv_cache_memory
    return Score(
        id=start.id,
        source_group=start.source_group,
        weights_gib=_gib(_predicted_weights(result)),
        weights_printed_gib=printed.get("weights_gib"),
        available_gib=None if available is None else available.likely / GIB,
        available_low_gib=None if available is None else available.low / GIB,
        available_high_gib=None if available is None else available.high / GIB,
        available_printed_gib=printed.get("available_kv_cache_gib"),
        tokens=None if result.cache is None else result.cache.kv_cache_size_tokens,
        tokens_printed=_whole(printed.get("kv_cache_size_tokens")),
        concurrency=None if result.cache is None else result.cache.max_concurrency,
        concurrency_printed=printed.get("max_concurrency"),
        fails=not result.ok,
        failed=start.failed,
        reason=None if result.reason is None else result.reason.code,
        widest_term=result.widest_term,
    )


def _predicted_weights(result: SizingResult) -> float | None:
    """Weights with the spread of their kind applied, bytes on the fullest rank."""
    loaded, coefficients = result.weights_bytes_per_rank, result.request.release.memory
    if loaded is None or coefficients is None:
        return None
    method = result.request.checkpoint.quantization.method or ""
    return loaded * coefficients.weight_share(method).likely


def _gib(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / GIB


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def summarise(scores: Sequence[Score]) -> AccuracySummary:
    """Count errors and coverage; a source counts once in `coverage_by_source`."""
    errors = [abs(e) for s in scores if (e := s.available_error_gib) is not None]
    tokens = [e for s in scores if (e := _tokens_or_memory_error(s)) is not None]
    roomy = [
        e
        for s in scores
        if (s.available_printed_gib or 0.0) > TIGHT_CACHE_GIB
        and (e := _tokens_or_memory_error(s)) is not None
    ]
    relative = [s for s in scores if s.relative_error is not None]
    covered = [s for s in scores if s.covered is not None]
    weights = [
        abs(s.weights_gib / s.weights_printed_gib - 1)
        for s in scores
        if s.weights_gib is not None and s.weights_printed_gib
    ]
    widths = [
        s.available_high_gib - s.available_low_gib
        for s in covered
        if s.available_high_gib is not None and s.available_low_gib is not None
    ]
    return AccuracySummary(
        rows=len(scores),
        sources=len({s.source_group for s in scores}),
        available_median_gib=_median(errors),
        available_p90_gib=_percentile(errors, 0.9),
        tokens_median=_median([abs(e) for e in tokens]),
        tokens_within_10_percent=_share(abs(e) <= TOO_MUCH for e in tokens),
        tokens_within_10_percent_roomy=_share(abs(e) <= TOO_MUCH for e in roomy),
        likely_promises_too_much=_share((s.relative_error or 0.0) > TOO_MUCH for s in relative),
        low_promises_too_much=_share(_low_error(s) > TOO_MUCH for s in relative),
        coverage_by_row=_share(bool(s.covered) for s in covered),
        coverage_by_source=_by_source(covered),
        width_median_gib=_median(widths),
        weights_median=_median(weights),
    )


def _tokens_or_memory_error(row: Score) -> float | None:
    """Relative error of the tokens, of the memory where the log shows no tokens."""
    return row.relative_error if row.tokens_error is None else row.tokens_error


def _low_error(row: Score) -> float:
    if row.available_low_gib is None or not row.available_printed_gib:
        return 0.0
    return row.available_low_gib / row.available_printed_gib - 1


def _by_source(rows: Iterable[Score]) -> float | None:
    groups: dict[str, list[bool]] = {}
    for row in rows:
        groups.setdefault(row.source_group, []).append(bool(row.covered))
    return _mean([sum(hits) / len(hits) for hits in groups.values()])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _percentile(values: Sequence[float], share: float) -> float | None:
    """Give the smallest value that at least `share` of all do not exceed."""
    if not values:
        return None
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, -int(-share * len(ranked) // 1) - 1))]


def _share(hits: Iterable[bool]) -> float | None:
    counted = list(hits)
    return sum(counted) / len(counted) if counted else None
