"""What each flag changes: its value now, other values with their figures, each a link."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from app.core.reasons import Number
from app.core.what_if import FlagKind, FlagRow, Outcome
from app.web.view_models.layout_table import Href
from app.wizard.answers import Answers


@dataclass(frozen=True, slots=True)
class FlagOutcome:
    """One other value; tokens and concurrency of one engine, None where vLLM would not start.

    `other_cache_dtype` is set where the value brings along another type of KV cache, as a
    checkpoint does whose files declare one: the figures then differ for both reasons.
    """

    value: Number
    tokens: int | None
    concurrency: float | None
    requests: int
    href: str
    other_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class FlagLine:
    """One flag. `now` is None where it is unset."""

    flag: str
    now: Number | None
    others: tuple[FlagOutcome, ...]
    source: str


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """The flags of one kind: `memory`, `divisor`, `neither`."""

    kind: FlagKind
    lines: tuple[FlagLine, ...]


KINDS: tuple[FlagKind, ...] = ("memory", "divisor", "neither")


def flag_groups(rows: Iterable[FlagRow], answers: Answers, href: Href) -> tuple[FlagGroup, ...]:
    """Sort the flags by what they change; kinds without a flag are left out."""
    rows = tuple(rows)
    dtype = next((row.now for row in rows if row.flag == "kv_cache_dtype"), None)
    groups = (
        FlagGroup(kind, tuple(_line(row, answers, href, dtype) for row in rows if row.kind == kind))
        for kind in KINDS
    )
    return tuple(group for group in groups if group.lines)


def _line(row: FlagRow, answers: Answers, href: Href, dtype: Number | None) -> FlagLine:
    others = tuple(_outcome(row.flag, other, answers, href, dtype) for other in row.others)
    return FlagLine(row.flag, row.now, others, row.source)


def _outcome(
    flag: str, outcome: Outcome, answers: Answers, href: Href, dtype: Number | None
) -> FlagOutcome:
    cache, resolved = outcome.result.cache, outcome.result.resolved
    other_dtype = None
    if flag != "kv_cache_dtype" and resolved is not None and resolved.cache_dtype != dtype:
        other_dtype = resolved.dtype if resolved.cache_dtype == "auto" else resolved.cache_dtype
    return FlagOutcome(
        value=outcome.value,
        tokens=cache.kv_cache_size_tokens if cache else None,
        concurrency=cache.max_concurrency if cache else None,
        requests=outcome.result.verdict_requests,
        href=href(answers.with_changes(**{flag: _answer(flag, outcome.value)})),
        other_cache_dtype=other_dtype,
    )


def _answer(flag: str, value: Number) -> object:
    """Return the value as an answer; drafts are a JSON object there."""
    if flag != "speculative_config":
        return value
    if not value:
        return None
    return json.dumps({"method": "mtp", "num_speculative_tokens": value}, sort_keys=True)
