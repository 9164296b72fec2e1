"""Reads the attention backends of `data/vllm/backends.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.attention_layer import AttentionBackend
from app.core.backends import BackendBook, BackendOrder

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
            tuple(_backends(table["backend"])),
            tuple((*_bounds(row), _order(row)) for row in table["order"]),
            tuple(table["reasons"].items()),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BackendDataError(f"{path.name}: {error}") from error


def _backends(
    rows: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Number, Number, AttentionBackend]]:
    """Lay each row over the row of the same name before it, which ends where this one begins."""
    chains: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        chain = chains.setdefault(row["name"], [])
        chain.append({**(chain[-1] if chain else {}), **row})
    for name, chain in chains.items():
        starts = [_bounds(row)[0] for row in chain]
        if starts != sorted(starts):
            raise ValueError(f"backend {name}: its rows are not in the order of their releases")
        for row, start, end in zip(chain, starts, [*starts[1:], _NEWEST], strict=True):
            yield start, end, _backend(row)


def _bounds(row: Mapping[str, Any]) -> tuple[Number, Number]:
    since = _number(row["since"]) if "since" in row else ()
    return since, _number(row["before"]) if "before" in row else _NEWEST


def _backend(row: Mapping[str, Any]) -> AttentionBackend:
    values: dict[str, Any] = {key: value for key, value in row.items() if key not in _BOUNDS}
    for key in ("kv_cache_dtypes", "model_dtypes"):
        if key in values:
            values[key] = frozenset(values[key])
    for key in _TUPLES:
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
_TUPLES = (
    "block_sizes",
    "head_sizes",
    "majors",
    "quantized_majors",
    "sink_majors",
    "qk_nope_head_dims",
    "rules",
)
