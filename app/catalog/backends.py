"""Reads the attention backends of `data/vllm/backends.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.backends import AttentionBackend, BackendBook, BackendOrder

Number = tuple[int, ...]
_NEWEST: Number = (10**6,)


class BackendDataError(ValueError):
    """A row of the backend file that cannot be used; names the file and the row."""


@dataclass(frozen=True, slots=True)
class BackendRows:
    """All rows, each with the first release it holds for and the first it no longer does."""

    backends: tuple[tuple[Number, Number, AttentionBackend], ...]
    orders: tuple[tuple[Number, Number, BackendOrder], ...]
    reasons: tuple[tuple[str, str], ...]

    def book_for(self, release: Number) -> BackendBook:
        """Collect what holds for one release."""
        return BackendBook(
            tuple(row for since, before, row in self.backends if since <= release < before),
            tuple(row for since, before, row in self.orders if since <= release < before),
            self.reasons,
        )


def load_backends(path: Path) -> BackendRows:
    """Read the file. Raises BackendDataError."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        return BackendRows(
            tuple((*_bounds(row), _backend(row)) for row in table["backend"]),
            tuple((*_bounds(row), _order(row)) for row in table["order"]),
            tuple(table["reasons"].items()),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BackendDataError(f"{path.name}: {error}") from error


def _bounds(row: Mapping[str, Any]) -> tuple[Number, Number]:
    since = _number(row["since"]) if "since" in row else ()
    return since, _number(row["before"]) if "before" in row else _NEWEST


def _backend(row: Mapping[str, Any]) -> AttentionBackend:
    values: dict[str, Any] = {key: value for key, value in row.items() if key not in _BOUNDS}
    for key in ("kv_cache_dtypes", "model_dtypes"):
        if key in values:
            values[key] = frozenset(values[key])
    for key in ("block_sizes", "head_sizes", "majors", "rules"):
        values[key] = tuple(values.get(key, ()))
    for key in ("min_capability", "max_capability"):
        if key in values:
            values[key] = _number(values[key])
    try:
        return AttentionBackend(**values)
    except TypeError as error:
        raise ValueError(f"backend {row.get('name')}: {error}") from error


def _order(row: Mapping[str, Any]) -> BackendOrder:
    values: dict[str, Any] = {key: value for key, value in row.items() if key not in _BOUNDS}
    for key in ("names", "majors"):
        values[key] = tuple(values.get(key, ()))
    return BackendOrder(**values)


def _number(version: str) -> Number:
    return tuple(int(part) for part in version.split("."))


_BOUNDS = frozenset({"since", "before"})
