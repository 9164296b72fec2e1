"""Reads the release rows of `data/vllm/releases.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from app.catalog.backends import load_backends
from app.catalog.measurements import load_measurements
from app.core.releases import BatchTier, Release

Notice = Literal["", "nearest_below", "approximate", "newest", "extrapolated", "oldest"]
_NOT_IN_ROWS = {"changes", "sources", "memory", "backends"}
_KNOWN = {field.name for field in fields(Release)} - _NOT_IN_ROWS
_SETS = (
    "kv_cache_dtypes",
    "v2_architectures",
    "sparse_mla_packed_dtypes",
    "flat_cache_backends",
    "fp8_kv_by_default_sm100",
)
_TUPLES = ("log_formats", "mamba_blocks", "hybrid_alignment")
_TABLES = ("forced_block_sizes", "min_batched_tokens", "quantization_min_capability")
_VERSION = re.compile(
    r"v?(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?P<suffix>[.+-]?[a-z][a-z0-9.+-]{0,40}|\+[a-z0-9.]{1,40})?",
    re.IGNORECASE,
)


class ReleaseDataError(ValueError):
    """A row of the release file that cannot be used; names the file, the row and the field."""


class UnknownReleaseError(ValueError):
    """Text that is no vLLM version at all."""


@dataclass(frozen=True, slots=True)
class Releases:
    """All known releases, oldest first."""

    rows: tuple[Release, ...]

    @property
    def newest(self) -> Release:
        """The newest release there is a row for."""
        return self.rows[-1]

    def release_for(self, version: str) -> tuple[Release, Notice]:
        """Find the release whose rules answer for `version`, and what to say about it.

        Exact: "". Between two rows: the row below, `nearest_below`. rc, dev and post of X count
        as X, `approximate`. `nightly`, `latest` or `main`: the newest row, `newest`. Above the
        newest row: the newest, `extrapolated`. Below the oldest: the oldest, `oldest`. A leading
        `v` is dropped.
        Raises UnknownReleaseError.
        """
        text = version.strip()
        if text.lower() in {"nightly", "latest", "main"}:
            return self.newest, "newest"
        match = _VERSION.fullmatch(text)
        if match is None:
            raise UnknownReleaseError(version)
        number = _padded(tuple(int(part) for part in match["number"].split(".")))
        if number > _padded(self.newest.number):
            return self.newest, "extrapolated"
        below = [row for row in self.rows if _padded(row.number) <= number]
        if not below:
            return self.rows[0], "oldest"
        if match["suffix"]:
            return below[-1], "approximate"
        return below[-1], "" if _padded(below[-1].number) == number else "nearest_below"


def load_releases(folder: Path) -> Releases:
    """Read `releases.toml` and `backends.toml` in `folder`, and `measurements` beside it.

    Raises ReleaseDataError, which names the file, the row and the field that is wrong.
    """
    path = folder / "releases.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    rows: list[Release] = []
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for row in table.get("release", []):
        try:
            facts, errors = _fold(facts, errors, row)
            changes = tuple(key for key in row if key not in {"version", "source"})
            rows.append(_release(facts, errors, changes, row["source"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ReleaseDataError(f"{path.name}, release {row.get('version')}: {error}") from error
    _check_order(rows, path.name)
    measurements = load_measurements(folder.parent / "measurements")
    books = load_backends(folder / "backends.toml")
    return Releases(
        tuple(
            replace(
                row,
                backends=books.book_for(row.number),
                memory=measurements.coefficients_for(row.number) if row.memory_estimate else None,
            )
            for row in rows
        )
    )


def _fold(
    facts: Mapping[str, Any], errors: Mapping[str, str], row: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Lay one row over the facts of the rows before it."""
    unknown = row.keys() - _KNOWN - {"source"}
    if unknown:
        raise ValueError(f"unknown field {', '.join(sorted(unknown))}")
    changed = {key: value for key, value in row.items() if key not in {"errors", "source"}}
    return {**facts, **changed}, {**errors, **row.get("errors", {})}


def _release(
    facts: Mapping[str, Any], errors: Mapping[str, str], changes: tuple[str, ...], source: str
) -> Release:
    missing = _KNOWN - facts.keys() - {"errors"}
    if missing:
        raise ValueError(f"missing field {', '.join(sorted(missing))}")
    values = dict(facts)
    values["batch_tiers"] = tuple(_tier(tier) for tier in facts["batch_tiers"])
    for key in _SETS:
        values[key] = frozenset(facts[key])
    for key in _TUPLES:
        values[key] = tuple(facts[key])
    for key in _TABLES:
        values[key] = tuple(facts[key].items())
    return Release(
        **values,
        errors=tuple(errors.items()),
        changes=changes,
        sources=(source,),
    )


def _tier(tier: Mapping[str, Any]) -> BatchTier:
    values: dict[str, Any] = dict(tier)
    for key in ("excluded_compute_capabilities", "excluded_name_parts"):
        values[key] = tuple(tier.get(key, ()))
    return BatchTier(**values)


def _check_order(rows: list[Release], name: str) -> None:
    if not rows:
        raise ReleaseDataError(f"{name}: no release row")
    for before, after in pairwise(rows):
        if after.number <= before.number:
            raise ReleaseDataError(f"{name}: release {after.version} stands after {before.version}")


def _padded(number: tuple[int, ...]) -> tuple[int, ...]:
    return (*number, 0, 0, 0, 0)[:4]
