"""What changed between two releases for one case: each rule that moved, proven by computing.

The rules of the first release are replaced by those of the second, one at a time in the order in
which vLLM changed them, and the case is sized after each. The effects therefore add up to the
difference between both releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Final, Literal

from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size

# Facts about the row itself, and texts of errors, which change no figure.
NO_RULES: Final = frozenset({"version", "changes", "sources", "errors"})
# An estimate is offered where there are coefficients: one rule.
PART_OF: Final = {"memory_estimate": "memory"}
NOT_IN_VLLM: Final = frozenset({"memory"})

Effect = Literal["figures", "range", "line", "together", "none"]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One rule that differs between both releases.

    `since` is the release in which it took the value it has in the newer of the two, `source` what
    that row of the release data cites (empty for the memory estimate, which is measured). `result`
    is the case sized with this rule and all before it replaced. `effect`: `figures` where tokens,
    concurrency or the start itself change, `range` where only the range of the estimate does,
    `line` where only the printed text does, `together` where the rule does something only beside
    another one, `none` where it does nothing for this case.
    """

    rule: str
    before: Any
    after: Any
    since: str
    source: str
    effect: Effect
    result: SizingResult


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """The case in both releases, and the rules between them in the order vLLM changed them."""

    before: SizingResult
    after: SizingResult
    changes: tuple[RuleChange, ...]


def compare_releases(
    request: SizingRequest, other: Release, rows: Sequence[Release]
) -> ReleaseComparison:
    """Size a case with its own release and with another one, and with everything in between.

    `rows` are all known releases, oldest first; both are among them.
    """
    first = request.release
    before = size(request)
    after = size(replace(request, release=other))
    changes: list[RuleChange] = []
    mixed, last = first, before
    for rule, moved in _moved(first, other, rows):
        mixed = _with_rule(mixed, rule, other)
        result = size(replace(request, release=mixed))
        changes.append(
            RuleChange(
                rule=rule,
                before=getattr(first, rule),
                after=getattr(other, rule),
                since=moved.version,
                source="" if rule in NOT_IN_VLLM else "; ".join(moved.sources),
                effect=_effect(last, result),
                result=result,
            )
        )
        last = result
    idle = _idle_alone(request, first, other, after, changes)
    return ReleaseComparison(
        before,
        after,
        tuple(
            replace(change, effect="together")
            if change.effect == "none" and change.rule not in idle
            else change
            for change in changes
        ),
    )


def _moved(
    first: Release, other: Release, rows: Sequence[Release]
) -> tuple[tuple[str, Release], ...]:
    """Name the rules that differ, each with the row in which it moved last, oldest first."""
    older, newer = sorted((first, other), key=rows.index)
    between = rows[rows.index(older) : rows.index(newer) + 1]
    found: list[tuple[str, Release]] = []
    for field in fields(Release):
        rule = field.name
        if rule in NO_RULES or rule in PART_OF or _same(rule, older, newer):
            continue
        moved = [row for earlier, row in pairwise(between) if not _same(rule, earlier, row)]
        found.append((rule, moved[-1]))
    return tuple(sorted(found, key=lambda each: _place(each[0], each[1], first, other, rows)))


def _place(
    rule: str, moved: Release, first: Release, other: Release, rows: Sequence[Release]
) -> int:
    """Order by release; an estimate that one of them lacks is there as long as it can be."""
    if rule == "memory" and first.memory is None:
        return -1
    if rule == "memory" and other.memory is None:
        return len(rows)
    return rows.index(moved)


def _same(rule: str, one: Release, other: Release) -> bool:
    """Compare by content: books and coefficients are equal only if they are the same object."""
    values = getattr(one, rule), getattr(other, rule)
    if values[0] is values[1]:
        return True
    if any(value is None for value in values) or not hasattr(values[0], "__dataclass_fields__"):
        return bool(values[0] == values[1])
    return asdict(values[0]) == asdict(values[1])


def _with_rule(release: Release, rule: str, source: Release) -> Release:
    names = [rule, *(part for part, whole in PART_OF.items() if whole == rule)]
    changed: dict[str, Any] = {name: getattr(source, name) for name in names}
    return replace(release, **changed)


def _effect(before: SizingResult, after: SizingResult) -> Effect:
    if _figures(before) != _figures(after):
        return "figures"
    if before.tokens_range != after.tokens_range:
        return "range"
    return "line" if before.log_lines != after.log_lines else "none"


def _figures(result: SizingResult) -> tuple[object, ...]:
    """Everything a person would call the figures of a start."""
    cache, available = result.cache, result.available_kv_cache_memory
    code = None if result.reason is None else result.reason.code
    memory = None if available is None else available.likely
    if cache is None:
        return code, memory
    return (
        code,
        memory,
        cache.kv_cache_size_tokens,
        cache.max_concurrency,
        cache.max_model_len,
        cache.num_gpu_blocks,
    )


def _idle_alone(
    request: SizingRequest,
    first: Release,
    other: Release,
    after: SizingResult,
    changes: Sequence[RuleChange],
) -> frozenset[str]:
    """Name the rules that changed nothing on the way and nothing when taken back from the end.

    Mostly one sizing settles it: all of them taken back at once.
    """
    idle = [change.rule for change in changes if change.effect == "none"]
    back = other
    for rule in idle:
        back = _with_rule(back, rule, first)
    if not idle or _effect(size(replace(request, release=back)), after) == "none":
        return frozenset(idle)
    return frozenset(
        rule
        for rule in idle
        if _effect(size(replace(request, release=_with_rule(other, rule, first))), after) == "none"
    )
