"""Fits the coefficients of the memory model to the observed starts: `make fit`.

Each coefficient marked `fitted` in `data/measurements/coefficients.json` is worked out from the
terms and totals that logs print; the others were read in vLLM's code. Where no start is left that
says anything (as in cross-validation), its `prior` stands.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from app.catalog.catalogue import load_catalogue
from app.catalog.measurements import Coefficient, Measurements, load_measurements
from app.core.coefficients import Bounds, exactly
from app.core.engine_defaults import resolve_engine_args
from app.core.sizing import size
from app.core.units import GIB
from app.tools.scoring import Score, score
from app.tools.starts import DATA, MEASUREMENTS, Start, read_starts

COVERAGE = 0.9
ROUNDING = 1e-9
SORTING_SAMPLER = (0, 11, 2)
TRITON_SAMPLER = (0, 17, 0)
SAMPLED_SEQUENCES = 1024

Place = tuple[str, tuple[str, ...], tuple[int, ...]]
Fit = Callable[[Measurements, Sequence[Start]], Bounds | None]


def fit(measurements: Measurements, starts: Iterable[Start]) -> Measurements:
    """Fit every coefficient that is to be fitted, in an order in which none needs a later one."""
    usable = [start for start in starts if start.request is not None]
    fitted = Measurements(
        tuple(row.with_prior() for row in measurements.rows), measurements.observed_releases
    )
    for place, work_out in FITS.items():
        bounds = work_out(fitted, usable)
        if bounds is not None:
            fitted = _with(fitted, place, bounds)
    return fitted


def _with(measurements: Measurements, place: Place, bounds: Bounds) -> Measurements:
    rows = tuple(
        replace(row, bounds=bounds) if (row.term, row.key, row.since) == place else row
        for row in measurements.rows
    )
    return replace(measurements, rows=rows)


def _spread(by_source: dict[str, list[float]]) -> Bounds | None:
    """Median of the sources' medians, between the smallest and the largest value."""
    if not by_source:
        return None
    values = [value for group in by_source.values() for value in group]
    likely = statistics.median(statistics.median(group) for group in by_source.values())
    return Bounds(min(values), likely, max(values))


def _collect(
    starts: Iterable[Start], value: Callable[[Start], float | None]
) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for start in starts:
        found = value(start)
        if found is not None:
            groups.setdefault(start.source_group, []).append(found)
    return groups


def _release(start: Start) -> tuple[int, ...]:
    assert start.request is not None  # noqa: S101 - fit() keeps usable starts only
    return start.request.release.number


def _sampler_bytes(start: Start) -> float | None:
    """Bytes per row and vocabulary entry, where the sampler set the logged peak."""
    peak = start.printed.get("peak_activation_gib")
    assert start.request is not None  # noqa: S101 - fit() keeps usable starts only
    resolved = resolve_engine_args(start.request)
    if peak is None or resolved.max_num_seqs < SAMPLED_SEQUENCES:
        return None
    model = start.request.model
    hidden = 2 * resolved.max_num_batched_tokens * model.hidden_size
    return (peak * GIB - hidden) / (resolved.max_num_seqs * model.vocab_size)


def _sorting_sampler(_: Measurements, starts: Sequence[Start]) -> Bounds | None:
    return _spread(
        _collect(
            starts,
            lambda s: (
                _sampler_bytes(s) if SORTING_SAMPLER <= _release(s) < TRITON_SAMPLER else None
            ),
        )
    )


def _early_sampler(measurements: Measurements, starts: Sequence[Start]) -> Bounds | None:
    """Up to 0.11.0 FlashInfer's sampler takes over where it is installed: it gives the low end."""
    found = _spread(
        _collect(starts, lambda s: _sampler_bytes(s) if _release(s) < SORTING_SAMPLER else None)
    )
    later = measurements.coefficients_for(SORTING_SAMPLER).runners["V1"].sampler_bytes_per_logit
    if found is None:
        return None
    return Bounds(min(found.low, later.likely), later.likely, later.likely)


def _non_torch(measurements: Measurements, starts: Sequence[Start]) -> Bounds | None:
    """Printed values of one card; the ends of the prior stay where they reach further."""

    def value(start: Start) -> float | None:
        alone = start.request is not None and start.request.layout.cards_per_engine == 1
        return _gib(start.printed.get("non_torch_gib")) if alone and not start.integrated else None

    found = _spread(_collect(starts, value))
    prior = _row(measurements, ("non_torch", (), (0, 0, 0))).bounds
    if found is None:
        return None
    return Bounds(min(prior.low, found.low), found.likely, max(prior.high, found.high))


def _gib(value: float | None) -> float | None:
    return None if value is None else value * GIB


def _graph_layer(measurements: Measurements, starts: Sequence[Start]) -> Bounds | None:
    """Printed estimate without the base, per layer and 51 sizes, where many sizes are captured."""

    def value(start: Start) -> float | None:
        estimate = start.printed.get("cudagraph_estimate_gib")
        assert start.request is not None  # noqa: S101 - fit() keeps usable starts only
        sizes = resolve_engine_args(start.request).cudagraph_capture_sizes
        if estimate is None or sizes < 8:  # noqa: PLR2004 - fewer sizes show the base alone
            return None
        base = measurements.coefficients_for(_release(start)).runners["V1"].graph_base_bytes
        layers = start.request.model.num_hidden_layers
        return (estimate * GIB - base.likely) / (layers * sizes / 51)

    return _spread(_collect(starts, value))


def _weights(method: str) -> Fit:
    def value(start: Start) -> float | None:
        logged = start.printed.get("weights_gib")
        request = start.request
        assert request is not None  # noqa: S101 - fit() keeps usable starts only
        found = request.checkpoint.quantization.method or ""
        if logged is None or not start.weights_predictable:
            return None
        if (found if found in OWN_WEIGHTS else "") != method:
            return None
        predicted = size(request).weights_bytes_per_rank
        return None if predicted is None else logged * GIB / predicted

    return lambda _, starts: _spread(_collect(starts, value))


OWN_WEIGHTS = frozenset({"mxfp4"})


def _scores(measurements: Measurements, starts: Iterable[Start]) -> list[Score]:
    return [
        score(s, measurements.coefficients_for(_release(s)), logged_weights=True) for s in starts
    ]


def _integrated(measurements: Measurements, starts: Sequence[Start]) -> Bounds | None:
    """What cards with shared memory take beyond the other terms; a source counts once."""
    shared = [s for s in starts if s.integrated]
    bare = _with(measurements, ("integrated", (), (0, 0, 0)), exactly(0.0))
    groups: dict[str, list[float]] = {}
    for row in _scores(bare, shared):
        if row.available_error_gib is not None:
            groups.setdefault(row.source_group, []).append(row.available_error_gib * GIB)
    prior = _row(measurements, ("integrated", (), (0, 0, 0))).bounds
    if len(groups) < 2:  # noqa: PLR2004 - one box says nothing about another
        return None
    found = _spread(groups)
    if found is None:
        return None
    return Bounds(min(prior.low, found.low), found.likely, max(prior.high, found.high))


def _unexplained(measurements: Measurements, starts: Sequence[Start]) -> Bounds | None:
    """Spread that, added to that of the terms, covers nine of ten rows, sources weighted alike.

    With n sources the level is 0.9 (1 + 1/n), the correction of conformal prediction: a source not
    seen yet is a little further off than those that were fitted. Never narrower than the prior,
    which rests on more starts than are published here.
    """
    bare = _with(measurements, ("unexplained", (), (0, 0, 0)), exactly(0.0))
    needed: list[tuple[float, str]] = []
    for row in _scores(bare, (s for s in starts if not s.integrated)):
        likely, error = row.available_gib, row.available_error_gib
        low, high = row.available_low_gib, row.available_high_gib
        if error is None or likely is None or low is None or high is None:
            continue
        known = likely - low if error > 0 else high - likely
        needed.append((math.sqrt(max(0.0, error**2 - known**2)), row.source_group))
    if not needed:
        return None
    sizes = {group: sum(g == group for _, g in needed) for _, group in needed}
    total = len(sizes)
    reached = 0.0
    for width, group in sorted(needed):
        reached += 1 / sizes[group] / total
        if reached >= min(1.0, COVERAGE * (1 + 1 / total)) - ROUNDING:
            prior = _row(measurements, ("unexplained", (), (0, 0, 0))).bounds
            return Bounds(min(prior.low, -width * GIB), 0.0, max(prior.high, width * GIB))
    return None


def _row(measurements: Measurements, place: Place) -> Coefficient:
    return next(r for r in measurements.rows if (r.term, r.key, r.since) == place)


FITS: dict[Place, Fit] = {
    ("sampler_bytes_per_logit", ("V1",), SORTING_SAMPLER): _sorting_sampler,
    ("sampler_bytes_per_logit", ("V1",), (0, 0, 0)): _early_sampler,
    ("non_torch", (), (0, 0, 0)): _non_torch,
    ("graph_layer", ("V1",), (0, 0, 0)): _graph_layer,
    ("weights", ("",), (0, 0, 0)): _weights(""),
    ("weights", ("mxfp4",), (0, 0, 0)): _weights("mxfp4"),
    ("integrated", (), (0, 0, 0)): _integrated,
    ("unexplained", (), (0, 0, 0)): _unexplained,
}


def _written(row: dict[str, Any], fitted: Coefficient) -> dict[str, Any]:
    scale = GIB if row["unit"].startswith("GiB") else 1
    ends = {end: round(getattr(fitted.bounds, end) / scale, 4) for end in ("low", "likely", "high")}
    return {**row, **ends}


def main() -> int:
    """Fit all coefficients to all usable starts and write them."""
    starts, _ = read_starts(load_catalogue(DATA))
    fitted = fit(load_measurements(MEASUREMENTS), starts)
    path = MEASUREMENTS / "coefficients.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    usable = [s for s in starts if s.request is not None and not s.failed]
    table["observed_releases"] = [
        ".".join(str(part) for part in number) for number in sorted({_release(s) for s in usable})
    ]
    table["terms"] = [
        _written(row, new) for row, new in zip(table["terms"], fitted.rows, strict=True)
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in table["terms"])
    releases = json.dumps(table["observed_releases"])
    path.write_text(
        f'{{\n "observed_releases": {releases},\n "terms": [\n  {lines}\n ]\n}}\n',
        encoding="utf-8",
    )
    for row in fitted.rows:
        if row.prior is not None:
            print(row.term, "/".join(row.key), row.bounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
