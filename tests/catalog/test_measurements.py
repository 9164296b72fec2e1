"""Coefficients are read by release, and a broken row is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.catalog.measurements import MeasurementDataError, load_measurements
from app.core.coefficients import Bounds
from app.core.units import GIB
from app.main import ROOT

SHIPPED = ROOT / "data" / "measurements"


def test_the_newest_row_that_is_not_newer_than_the_release_counts() -> None:
    """The sorting sampler gives way to Triton's in 0.17.0, not before."""
    measured = load_measurements(SHIPPED)
    sorting = measured.coefficients_for((0, 16, 9)).runners["V1"].sampler_bytes_per_logit
    triton = measured.coefficients_for((0, 17, 0)).runners["V1"].sampler_bytes_per_logit
    assert sorting.likely > 38
    assert triton.likely == 14


def test_gib_become_bytes_and_other_units_stay() -> None:
    """A context of half a GiB, a share of one."""
    coefficients = load_measurements(SHIPPED).coefficients_for((0, 32, 0))
    assert coefficients.context_bytes == Bounds(0.25 * GIB, 0.5 * GIB, 1.2 * GIB)
    assert coefficients.cold_compile == Bounds(0.0, 1.0, 1.0)
    assert coefficients.sparse_workspace_rows == (5, 2)
    assert coefficients.moe_workspace_kept is True


def test_every_fitted_row_has_a_prior_and_names_its_starts() -> None:
    """What was fitted can be forgotten, and the starts it rests on are published."""
    table = json.loads((SHIPPED / "observed_starts.json").read_text(encoding="utf-8"))
    published = {row["id"] for row in table["starts"]}
    for row in load_measurements(SHIPPED).rows:
        assert set(row.rows) <= published, row
        assert row.source
        assert row.with_prior().bounds == (row.prior or row.bounds)


def test_observed_releases_are_those_of_the_published_starts() -> None:
    """In order, the oldest first."""
    observed = load_measurements(SHIPPED).observed_releases
    numbers = [tuple(int(part) for part in version.split(".")) for version in observed]
    assert numbers == sorted(numbers)
    assert {"0.9.2", "0.28.0", "0.31.0"} <= set(observed)


def write(folder: Path, **changes: object) -> Path:
    """Write a file with one row."""
    row = {
        "term": "context",
        "from": "0.0.0",
        "low": 1,
        "likely": 2,
        "high": 3,
        "unit": "GiB",
        "source": "test",
        "rows": [],
        "fitted": False,
        **changes,
    }
    table = {"observed_releases": [], "terms": [row]}
    (folder / "coefficients.json").write_text(json.dumps(table), encoding="utf-8")
    return folder


def test_a_whole_row_is_read(tmp_path: Path) -> None:
    """The control of the faults below."""
    (row,) = load_measurements(write(tmp_path)).rows
    assert row.bounds == Bounds(GIB, 2 * GIB, 3 * GIB)
    assert row.prior is None


@pytest.mark.parametrize(
    "changes",
    [
        {"likely": 4},
        {"low": "much"},
        {"from": "new"},
        {"fitted": True},
        {"fitted": True, "prior": [1, 2]},
    ],
)
def test_a_broken_row_is_named_by_file_and_term(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Ends out of order, no number, no version, no prior."""
    with pytest.raises(MeasurementDataError, match=r"coefficients\.json, term context"):
        load_measurements(write(tmp_path, **changes))
