"""Measures the memory model on observed starts: `make accuracy`.

Every start is predicted with coefficients that were fitted without any start of its source. The
table goes to `data/measurements/accuracy.json`, which the site shows. The run fails when a figure
is worse than the committed one or than the bar, when a start that worked is called failing or a
failed one working, and when shuffled logs score as well as the real ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.catalog.accuracy import AccuracySummary
from app.catalog.catalogue import Catalogue, load_catalogue
from app.catalog.measurements import load_measurements
from app.core.memory import graph_family
from app.tools.fit import fit
from app.tools.naive import NAIVE, naive_score
from app.tools.scoring import Score, score, summarise
from app.tools.starts import DATA, MEASUREMENTS, Start, Unusable, read_starts

RESULT = MEASUREMENTS / "accuracy.json"
TOLERANCE = 1e-6

BARS: dict[str, tuple[float, float]] = {
    "available_median_gib": (0.0, 0.5),
    "available_p90_gib": (0.0, 1.3),
    "tokens_median": (0.0, 0.025),
    "tokens_within_10_percent": (0.85, 1.0),
    "tokens_within_10_percent_roomy": (0.97, 1.0),
    "likely_promises_too_much": (0.0, 0.05),
    "low_promises_too_much": (0.0, 0.01),
    "coverage_by_source": (0.85, 0.97),
    "width_median_gib": (0.0, 2.2),
}
PREDICTED_WEIGHTS_BARS = {"available_median_gib": (0.0, 0.6)}
SMALLER_IS_BETTER = frozenset(name for name, (low, _) in BARS.items() if low == 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A start with its scores: with the logged weights, and with predicted ones."""

    start: Start
    logged: Score
    predicted: Score


def crossed(starts: Sequence[Start]) -> tuple[Row, ...]:
    """Score every start with coefficients fitted on all other sources."""
    measurements = load_measurements(MEASUREMENTS)
    rows = []
    for group in sorted({start.source_group for start in starts}):
        fitted = fit(measurements, [s for s in starts if s.source_group != group])
        for start in starts:
            if start.source_group != group or start.request is None:
                continue
            coefficients = fitted.coefficients_for(start.request.release.number)
            rows.append(
                Row(
                    start,
                    score(start, coefficients, logged_weights=True),
                    score(start, coefficients, logged_weights=False),
                )
            )
    order = {start.id: place for place, start in enumerate(starts)}
    return tuple(sorted(rows, key=lambda row: order[row.start.id]))


def discrete(rows: Iterable[Row]) -> list[Row]:
    """Leave out cards that share the host's memory: they have a term and a table of their own."""
    return [row for row in rows if not row.start.integrated]


def shuffled(scores: Sequence[Score]) -> list[Score]:
    """Move every printed figure to the next start: a control that must fail the bars."""
    return [
        replace(
            row,
            available_printed_gib=other.available_printed_gib,
            tokens_printed=other.tokens_printed,
            concurrency_printed=other.concurrency_printed,
        )
        for row, other in zip(scores, [*scores[1:], *scores[:1]], strict=True)
    ]


def below_bar(summary: AccuracySummary, bars: dict[str, tuple[float, float]]) -> list[str]:
    """Name the figures that lie outside their bar."""
    figures = asdict(summary)
    return [
        f"{name} {figures[name]} is not in {low} to {high}"
        for name, (low, high) in bars.items()
        if figures[name] is not None and not low <= figures[name] <= high
    ]


def worse(now: dict[str, Any], committed: dict[str, Any]) -> list[str]:
    """Name the figures that are worse than the committed ones."""
    found = []
    for name in BARS:
        before, after = committed.get(name), now.get(name)
        if before is None or after is None or name == "coverage_by_source":
            continue
        change = after - before if name in SMALLER_IS_BETTER else before - after
        if change > TOLERANCE:
            found.append(f"{name} was {before}, is {after}")
    return found


def wrong_outcomes(rows: Iterable[Row]) -> list[str]:
    """Name starts that worked and are called failing, and failed ones that are called working."""
    return [
        f"{row.start.id}: {'failed' if row.start.failed else 'worked'}, predicted"
        f" {row.logged.reason or 'to work'}"
        for row in rows
        if row.logged.fails != row.start.failed
    ]


def summaries(rows: Sequence[Row], key: Callable[[Row], str]) -> dict[str, Any]:
    """Summarise by a property of the start."""
    groups: dict[str, list[Score]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row.logged)
    return {name: asdict(summarise(group)) for name, group in sorted(groups.items())}


def report(rows: Sequence[Row], unusable: Sequence[Unusable]) -> dict[str, Any]:
    """Put everything together that the site shows."""
    kept = discrete(rows)
    logged = [row.logged for row in kept]
    predictable = [row.predicted for row in kept if row.start.weights_predictable]
    failed = [row for row in rows if row.start.failed]
    return {
        "summary": asdict(summarise(logged)),
        "predicted_weights": asdict(summarise(predictable)),
        "shared_memory": asdict(summarise([r.logged for r in rows if r.start.integrated])),
        "naive": {
            name: asdict(summarise([naive_score(row.start, formula) for row in kept]))
            for name, formula in NAIVE.items()
        },
        "by_card": summaries(rows, lambda row: row.start.inputs.get("gpu") or "unnamed"),
        "by_family": summaries(kept, _family),
        "by_release": summaries(kept, lambda row: row.start.inputs["vllm_version"]),
        "failed_starts": {
            "reconstructed": len(failed),
            "predicted": sum(row.logged.fails for row in failed),
        },
        "rows": [_row(row) for row in rows],
        "unusable": [asdict(row) for row in unusable],
    }


def _family(row: Row) -> str:
    return "" if row.start.request is None else graph_family(row.start.request.model)


def _row(row: Row) -> dict[str, Any]:
    """Give one start's line of the table."""
    return {
        "inputs": dict(row.start.inputs),
        "source": row.start.source,
        "inferred": row.start.inferred,
        "miss": row.start.miss,
        **asdict(row.logged),
        "available_error_gib": row.logged.available_error_gib,
        "tokens_error": row.logged.tokens_error,
        "covered": row.logged.covered,
    }


def faults(result: dict[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    """Name everything that makes the run fail."""
    kept = discrete(rows)
    yield from below_bar(summarise([row.logged for row in kept]), BARS)
    predictable = [row.predicted for row in kept if row.start.weights_predictable]
    yield from below_bar(summarise(predictable), PREDICTED_WEIGHTS_BARS)
    yield from wrong_outcomes(rows)
    if not below_bar(summarise(shuffled([row.logged for row in kept])), BARS):
        yield "shuffled logs pass the bars: the check cannot fail"
    if RESULT.exists():
        committed = json.loads(RESULT.read_text(encoding="utf-8"))
        yield from worse(result["summary"], committed["summary"])


def _shown(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def print_table(rows: Iterable[Row]) -> None:
    """Print predicted beside printed, start by start."""
    print("start      weights          available               tokens            concurrency")
    for row in rows:
        s = row.logged
        print(
            f"{s.id:9} {_shown(s.weights_gib):>7} {_shown(s.weights_printed_gib):>7}"
            f"  {_shown(s.available_gib):>7} {_shown(s.available_printed_gib):>7}"
            f" {_shown(s.available_error_gib):>6}"
            f"  {_shown(s.tokens, 0):>9} {_shown(s.tokens_printed, 0):>9}"
            f"  {_shown(s.concurrency):>7} {_shown(s.concurrency_printed):>7}"
            f"  {'' if s.covered is None or s.covered else 'outside'}{s.reason or ''}"
        )


def print_summary(title: str, figures: dict[str, Any]) -> None:
    """Print one summary on one line."""
    shown = ", ".join(
        f"{name} {value if isinstance(value, int) else _shown(value, 3)}"
        for name, value in figures.items()
    )
    print(f"{title}: {shown}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    catalogue: Catalogue = load_catalogue(DATA)
    starts, unusable = read_starts(catalogue)
    rows = crossed(starts)
    result = report(rows, unusable)
    print_table(rows)
    print_summary("all discrete cards, logged weights", result["summary"])
    print_summary("predicted weights", result["predicted_weights"])
    print_summary("shared memory (GB10)", result["shared_memory"])
    for name, figures in result["naive"].items():
        print_summary(name, figures)
    for part in ("by_card", "by_family", "by_release"):
        for name, figures in result[part].items():
            print_summary(f"{part} {name}", figures)
    print(f"failed starts: {result['failed_starts']}")
    for start in starts:
        if start.request is None:
            print(f"{start.id} cannot be sized: {start.obstacle}")
    found = list(faults(result, rows))
    for fault in found:
        print(f"FAULT {fault}")
    if not options.check and not found:
        text = json.dumps(result, ensure_ascii=False, indent=1)
        RESULT.write_text(text + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
