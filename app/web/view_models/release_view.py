"""Two releases side by side for one case, and the rules between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.core.reasons import Reason
from app.core.result import Range, SizingResult
from app.wizard.release_changes import Effect, ReleaseComparison, RuleChange


@dataclass(frozen=True, slots=True)
class Side:
    """What one release makes of the case. Figures are those of one instance, memory per card.

    `tokens` and what follows are None where vLLM refuses or no memory is estimated.
    """

    version: str
    log_lines: tuple[str, ...]
    tokens: int | None
    concurrency: float | None
    num_gpu_blocks: int | None
    block_size: int | None
    max_model_len: int | None
    available: Range | None
    is_exact: bool
    requests: int
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule that differs.

    `before` and `after` are values a person can read, None where the rule is a table or a list.
    `added` and `dropped` name the entries of lists. The effects are what this rule adds to what the
    rules before it gave; None where one of both starts prints no figure. `starts` and `stops` say
    that the start works only from here on, or no longer.
    """

    rule: str
    before: bool | float | str | None
    after: bool | float | str | None
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    since: str
    source: str
    effect: Effect
    tokens: int | None
    tokens_effect: int | None
    concurrency_effect: float | None
    available_effect: int | None
    starts: bool
    stops: bool


@dataclass(frozen=True, slots=True)
class ReleaseView:
    """Both sides, the rules that move something here, those that need another one, the others."""

    before: Side
    after: Side
    moved: tuple[RuleLine, ...]
    together: tuple[RuleLine, ...]
    idle: tuple[RuleLine, ...]


def release_view(comparison: ReleaseComparison) -> ReleaseView:
    """Arrange a comparison for the page."""
    lines: list[RuleLine] = []
    last = comparison.before
    for change in comparison.changes:
        lines.append(_line(change, last))
        last = change.result
    return ReleaseView(
        before=_side(comparison.before),
        after=_side(comparison.after),
        moved=tuple(each for each in lines if each.effect not in {"none", "together"}),
        together=tuple(each for each in lines if each.effect == "together"),
        idle=tuple(each for each in lines if each.effect == "none"),
    )


def _side(result: SizingResult) -> Side:
    cache, release = result.cache, result.request.release
    return Side(
        version=release.version,
        log_lines=result.log_lines,
        tokens=cache.kv_cache_size_tokens if cache else None,
        concurrency=cache.max_concurrency if cache else None,
        num_gpu_blocks=cache.num_gpu_blocks if cache else None,
        block_size=cache.block_size if cache else None,
        max_model_len=cache.max_model_len if cache else None,
        available=result.available_kv_cache_memory,
        is_exact=result.concurrency_range is None,
        requests=result.verdict_requests,
        reason=result.reason,
    )


def _line(change: RuleChange, last: SizingResult) -> RuleLine:
    now = change.result
    before, after = _names(change.before), _names(change.after)
    tokens = concurrency = available = None
    if last.cache is not None and now.cache is not None:
        tokens = now.cache.kv_cache_size_tokens - last.cache.kv_cache_size_tokens
        concurrency = now.cache.max_concurrency - last.cache.max_concurrency
    if last.available_kv_cache_memory is not None and now.available_kv_cache_memory is not None:
        available = int(
            now.available_kv_cache_memory.likely - last.available_kv_cache_memory.likely
        )
    return RuleLine(
        rule=change.rule,
        before=_readable(change.before),
        after=_readable(change.after),
        added=tuple(name for name in after if name not in before),
        dropped=tuple(name for name in before if name not in after),
        since=change.since,
        source=change.source,
        effect=change.effect,
        tokens=now.cache.kv_cache_size_tokens if now.cache else None,
        tokens_effect=tokens,
        concurrency_effect=concurrency,
        available_effect=available,
        starts=not last.ok and now.ok,
        stops=last.ok and not now.ok,
    )


def _readable(value: Any) -> bool | float | str | None:  # noqa: ANN401 - a release's own facts
    return value if isinstance(value, bool | int | float | str) else None


def _names(value: object) -> tuple[str, ...]:
    """Return the entries of a list of names, sorted; nothing for any other kind of value."""
    if isinstance(value, frozenset) and value and all(isinstance(each, str) for each in value):
        return tuple(sorted(_texts(value)))
    return ()


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(each for each in values if isinstance(each, str))
