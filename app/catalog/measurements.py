"""Reads the measured coefficients of the memory model from `data/measurements`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.core.coefficients import Bounds, MemoryCoefficients, RunnerCoefficients
from app.core.units import GIB

RUNNERS = ("V1", "V2")
_BOUNDS = ("low", "likely", "high")


class MeasurementDataError(ValueError):
    """A row of the coefficients that cannot be used; names the file, the term and the fault."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One row: a term with its spread, from a release on.

    `key` tells rows of one term apart (runner, family, model type or quantisation method);
    `rows` are the ids of the observed starts it rests on. `prior` is what a coefficient that is
    fitted falls back to without starts; None for one that was read in vLLM's code.
    """

    term: str
    key: tuple[str, ...]
    since: tuple[int, ...]
    bounds: Bounds
    rows: tuple[str, ...]
    source: str
    prior: Bounds | None = None

    def with_prior(self) -> Coefficient:
        """Forget what was fitted."""
        return self if self.prior is None else replace(self, bounds=self.prior)


@dataclass(frozen=True, slots=True)
class Measurements:
    """All coefficients, and the releases of which starts were observed, oldest first."""

    rows: tuple[Coefficient, ...]
    observed_releases: tuple[str, ...]

    def coefficients_for(self, release: tuple[int, ...]) -> MemoryCoefficients:
        """Pick what holds for a release: of each term the newest row not newer than it."""
        picked: dict[tuple[str, tuple[str, ...]], Coefficient] = {}
        for row in self.rows:
            known = picked.get((row.term, row.key))
            if row.since <= release and (known is None or known.since <= row.since):
                picked[row.term, row.key] = row
        bounds = {place: row.bounds for place, row in picked.items()}
        return MemoryCoefficients(
            runners={name: _runner(bounds, name) for name in RUNNERS},
            cold_compile=bounds["cold_compile", ()],
            moe_workspace_kept=bool(bounds["moe_workspace_kept", ()].likely),
            sparse_workspace_rows=(
                int(bounds["sparse_workspace_rows", ()].likely),
                int(bounds["sparse_workspace_rows_long", ()].likely),
            ),
            non_torch_bytes=bounds["non_torch", ()],
            non_torch_group_bytes=bounds["non_torch_group", ()],
            context_bytes=bounds["context", ()],
            context_group_bytes=bounds["context_group", ()],
            integrated_bytes=bounds["integrated", ()],
            weights={key[0]: b for (term, key), b in bounds.items() if term == "weights"},
            encoder_bytes={key[0]: b for (term, key), b in bounds.items() if term == "encoder"},
            driver_only_bytes=bounds["driver_only", ()],
            unexplained_bytes=bounds["unexplained", ()],
            observed_releases=self.observed_releases,
        )


def load_measurements(folder: Path) -> Measurements:
    """Read `coefficients.json` in `folder`; GiB become bytes. Raises MeasurementDataError."""
    path = folder / "coefficients.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    return Measurements(
        rows=tuple(_coefficient(row, path.name) for row in table["terms"]),
        observed_releases=tuple(table["observed_releases"]),
    )


def _runner(bounds: Mapping[tuple[str, tuple[str, ...]], Bounds], name: str) -> RunnerCoefficients:
    return RunnerCoefficients(
        sampler_bytes_per_logit=bounds["sampler_bytes_per_logit", (name,)],
        sampler_state_bytes_per_logit=bounds["sampler_state_bytes_per_logit", (name,)].likely,
        graph_base_bytes=bounds["graph_base", (name,)],
        graph_layer_bytes=bounds["graph_layer", (name,)],
        graph_bytes={
            key[1]: row
            for (term, key), row in bounds.items()
            if term == "graph_capture" and key[0] == name
        },
    )


def _coefficient(row: Mapping[str, Any], name: str) -> Coefficient:
    try:
        scale = GIB if row["unit"].startswith("GiB") else 1
        bounds = _bounds([row[end] for end in _BOUNDS], scale)
        prior = _bounds(row["prior"], scale) if row["fitted"] else None
        since = tuple(int(part) for part in row["from"].split("."))
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementDataError(f"{name}, term {row.get('term')}: {error!r}") from error
    if not bounds.low <= bounds.likely <= bounds.high:
        raise MeasurementDataError(
            f"{name}, term {row['term']}: low, likely, high are out of order"
        )
    return Coefficient(
        term=row["term"],
        key=tuple(
            row[name] for name in ("runner", "family", "method", "model_type") if name in row
        ),
        since=since,
        bounds=bounds,
        rows=tuple(row["rows"]),
        source=row["source"],
        prior=prior,
    )


def _bounds(ends: Sequence[float], scale: int) -> Bounds:
    low, likely, high = (float(end) * scale for end in ends)
    return Bounds(low, likely, high)
