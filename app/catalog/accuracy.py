"""Reads how accurate the memory model is: `data/measurements/accuracy.json`.

`make accuracy` writes that file; nothing here computes a figure anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class AccuracySummary:
    """Figures over a set of starts: sizes in GiB, shares of 1; None where nothing can be counted.

    Errors are predicted minus printed memory for the cache (`available`) or tokens, without sign.
    `coverage_by_source` counts each publication once; `width` is that of the range.
    """

    rows: int
    sources: int
    available_median_gib: float | None
    available_p90_gib: float | None
    tokens_median: float | None
    tokens_within_10_percent: float | None
    tokens_within_10_percent_roomy: float | None
    likely_promises_too_much: float | None
    low_promises_too_much: float | None
    coverage_by_row: float | None
    coverage_by_source: float | None
    width_median_gib: float | None
    weights_median: float | None


@dataclass(frozen=True, slots=True)
class ScoredStart:
    """One observed start, predicted without its own source, beside what its log printed.

    `inputs` are answers under their names in a link. `inferred` says what the log left out.
    """

    id: str
    inputs: Mapping[str, Any]
    source: str
    inferred: str | None
    weights_gib: float | None
    weights_printed_gib: float | None
    available_gib: float | None
    available_low_gib: float | None
    available_high_gib: float | None
    available_printed_gib: float | None
    available_error_gib: float | None
    tokens: int | None
    tokens_printed: int | None
    tokens_error: float | None
    concurrency: float | None
    concurrency_printed: float | None
    covered: bool | None
    failed: bool
    fails: bool
    reason: str | None
    widest_term: str | None


@dataclass(frozen=True, slots=True)
class UnusableStart:
    """A published start that cannot be scored; `code` says why."""

    id: str
    source: str
    model: str
    code: str


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What was predicted, what was printed, and what that adds up to.

    `summary` is about discrete cards with the weights of the log, `predicted_weights` with weights
    computed here, `shared_memory` about cards that share the host's memory. `naive` are the
    formulas of others on the same starts.
    """

    summary: AccuracySummary
    predicted_weights: AccuracySummary
    shared_memory: AccuracySummary
    naive: Mapping[str, AccuracySummary]
    by_card: Mapping[str, AccuracySummary]
    by_family: Mapping[str, AccuracySummary]
    by_release: Mapping[str, AccuracySummary]
    failed_reconstructed: int
    failed_predicted: int
    starts: tuple[ScoredStart, ...]
    unusable: tuple[UnusableStart, ...]


def load_accuracy(path: Path) -> Accuracy:
    """Read the file. Raises OSError, KeyError and ValueError where it is not as written above."""
    table = json.loads(path.read_text(encoding="utf-8"))
    failed = table["failed_starts"]
    return Accuracy(
        summary=_summary(table["summary"]),
        predicted_weights=_summary(table["predicted_weights"]),
        shared_memory=_summary(table["shared_memory"]),
        naive=_summaries(table["naive"]),
        by_card=_summaries(table["by_card"]),
        by_family=_summaries(table["by_family"]),
        by_release=_by_version(_summaries(table["by_release"])),
        failed_reconstructed=failed["reconstructed"],
        failed_predicted=failed["predicted"],
        starts=tuple(ScoredStart(**_known(ScoredStart, row)) for row in table["rows"]),
        unusable=tuple(UnusableStart(**_known(UnusableStart, row)) for row in table["unusable"]),
    )


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """Take what a class has a field for; raises KeyError where something is missing."""
    return {field.name: row[field.name] for field in fields(kind)}


def _summary(row: Mapping[str, Any]) -> AccuracySummary:
    return AccuracySummary(**_known(AccuracySummary, row))


def _summaries(rows: Mapping[str, Any]) -> dict[str, AccuracySummary]:
    return {name: _summary(row) for name, row in rows.items()}


def _by_version(rows: Mapping[str, AccuracySummary]) -> dict[str, AccuracySummary]:
    """Sort releases by their numbers, oldest first."""
    return {name: rows[name] for name in sorted(rows, key=_number)}


def _number(version: str) -> tuple[int, ...]:
    digits = "".join(each if each.isdigit() else " " for each in version.partition("rc")[0])
    return tuple(int(part) for part in digits.split())
