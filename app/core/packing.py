"""Groups layers with mixed page sizes for blocks that hold the pages of all layers (DeepSeek-V4).

Source: `_get_packed_kv_cache_groups` in vllm/v1/core/kv_cache_utils.py (from 0.29.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.kv_spec import KvSpec
from app.core.units import ceil_div

_WINDOW_KINDS = frozenset({"sliding_window", "sliding_window_mla"})


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Layers of one type; `pages` are their indices by page size, in order of appearance."""

    spec: KvSpec
    layers: tuple[int, ...]
    pages: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def balanced(self) -> bool:
        """True where every page size occurs equally often: a repeating pattern of layers."""
        return len({len(layers) for _, layers in self.pages}) == 1

    @property
    def repeats(self) -> int:
        """How often the most frequent page size occurs."""
        return max(len(layers) for _, layers in self.pages)

    def widest_group_bytes(self, groups: int) -> int:
        """Page bytes of the largest of so many groups."""
        return sum(ceil_div(len(layers), groups) * page for page, layers in self.pages)


def packed_groups(specs: Sequence[KvSpec]) -> list[list[int]]:
    """Split layers into groups of layer indices whose pages pack into one block."""
    buckets = _buckets(specs)
    mixed = [b.repeats for b in buckets if b.balanced and len(b.pages) > 1]
    repeats = (
        approximate_gcd([b.repeats for b in buckets if b.balanced], max(mixed)) if mixed else 0
    )

    def splits(bucket: _Bucket) -> int:
        return ceil_div(bucket.repeats, repeats) if bucket.balanced and repeats else 1

    # Where no pattern repeats, windows are split until a group of them fits the widest other one.
    fitted = _WINDOW_KINDS if not repeats else frozenset()
    anchor = max(
        b.widest_group_bytes(len(b.layers) if b.spec.kind in fitted else splits(b)) for b in buckets
    )
    groups: list[list[int]] = []
    for bucket in buckets:
        count = splits(bucket)
        if bucket.spec.kind in fitted:
            fitting = anchor // bucket.spec.page_size_bytes
            count = ceil_div(len(bucket.layers), fitting)
        if count == 1:
            groups.append(list(bucket.layers))
            continue
        patterns = list(zip(*(layers for _, layers in bucket.pages), strict=True))
        groups.extend(
            [layer for pattern in patterns[start::count] for layer in pattern]
            for start in range(count)
        )
    return groups


def _buckets(specs: Sequence[KvSpec]) -> list[_Bucket]:
    """Gather layers of one type, whatever their page size."""
    members: dict[tuple[str | int | None, ...], list[int]] = {}
    for index, spec in enumerate(specs):
        members.setdefault(_type_of(spec), []).append(index)
    buckets = []
    for layers in members.values():
        pages: dict[int, list[int]] = {}
        for index in layers:
            pages.setdefault(specs[index].page_size_bytes, []).append(index)
        buckets.append(
            _Bucket(
                specs[layers[0]],
                tuple(layers),
                tuple((page, tuple(own)) for page, own in pages.items()),
            )
        )
    return buckets


def _type_of(spec: KvSpec) -> tuple[str | int | None, ...]:
    """What layers of one type have in common; see groups.is_uniform_type."""
    if spec.is_full:
        return "full", spec.block_size
    return spec.kind, spec.block_size, spec.window


def approximate_gcd(values: Sequence[int], smallest: int) -> int:
    """Pick the chunk from `smallest` up that rounds the values up least; the larger of equals."""
    return min(
        range(smallest, max(values) + 1),
        key=lambda chunk: (sum(-value % chunk for value in values), -chunk),
    )
