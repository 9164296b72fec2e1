"""Observed starts of vLLM: read from `data/measurements`, asked of the same core as everything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.catalog.catalogue import Catalogue
from app.core.coefficients import MemoryCoefficients
from app.core.request import SizingRequest
from app.core.units import GIB
from app.wizard.answers import parse_answers
from app.wizard.sizing_request import to_request

DATA = Path(__file__).resolve().parents[2] / "data"
MEASUREMENTS = DATA / "measurements"


@dataclass(frozen=True, slots=True)
class Start:
    """One start somebody published: what was asked, what was printed.

    `source_group` joins starts of one publication; `inferred` says what the log left out.
    `printed` has `weights_gib`, `available_kv_cache_gib`, `kv_cache_size_tokens` ... as far as the
    log shows them. `request` is None where the project cannot size it yet; `obstacle` says why.
    `weights_predictable` is False where the log's checkpoint is not the one that is asked. `miss`
    is a code for what the prediction cannot know: `compile_cache_filled`, `flashinfer_sampler`,
    `nccl_charged`, `card_total_not_printed`, `not_explained`.
    """

    id: str
    source_group: str
    source: str
    inferred: str | None
    failed: bool
    inputs: Mapping[str, Any]
    printed: Mapping[str, float]
    request: SizingRequest | None
    obstacle: str = ""
    weights_predictable: bool = True
    miss: str | None = None

    @property
    def integrated(self) -> bool:
        """Whether the card shares the host's memory, which has a term and a table of its own."""
        return self.request is not None and self.request.gpu.integrated_memory

    def asked(
        self, coefficients: MemoryCoefficients | None = None, *, logged_weights: bool
    ) -> SizingRequest:
        """Build the request, with other coefficients and with the logged weights where wanted.

        Raises ValueError where there is none.
        """
        if self.request is None:
            raise ValueError(f"{self.id}: {self.obstacle}")
        request = self.request
        if coefficients is not None:
            request = replace(request, release=replace(request.release, memory=coefficients))
        weights = self.printed.get("weights_gib")
        if logged_weights and weights is not None:
            measured = replace(request.measured, weights_bytes=round(weights * GIB))
            request = replace(request, measured=measured)
        return request


@dataclass(frozen=True, slots=True)
class Unusable:
    """A published start that cannot be scored, and why."""

    id: str
    source: str
    model: str
    code: str
    reason: str


def read_starts(catalogue: Catalogue) -> tuple[tuple[Start, ...], tuple[Unusable, ...]]:
    """Read all starts, usable ones with their request."""
    table = json.loads((MEASUREMENTS / "observed_starts.json").read_text(encoding="utf-8"))
    unusable = tuple(
        Unusable(row["id"], row["source"], row["model"], row["code"], row["reason"])
        for row in table["unusable"]
    )
    return tuple(_start(row, catalogue) for row in table["starts"]), unusable


def _start(row: Mapping[str, Any], catalogue: Catalogue) -> Start:
    pairs = ((name, json.dumps(value).strip('"')) for name, value in row["request"].items())
    prepared = to_request(parse_answers(pairs).answers, catalogue)
    obstacle = ""
    if prepared.reason is not None:
        obstacle = prepared.reason.code
    elif prepared.problems:
        obstacle = ", ".join(problem.code for problem in prepared.problems)
    return Start(
        id=row["id"],
        source_group=row["source_group"],
        source=row["source"],
        inferred=row["inferred"],
        failed=row["failed"],
        inputs=row["request"],
        printed=row["printed"],
        request=prepared.request,
        obstacle=obstacle,
        weights_predictable=row.get("weights_predictable", True),
        miss=row["miss"],
    )
