"""How DeepSeek-V4 was packed before 0.29.0: layers in tuples of one page of each size.

The MLA layers form one group; its pages are the tuple. Windows are split into groups of as many
tuples, up to 0.26.0 with their pages padded to those of the tuple. Source:
`_get_kv_cache_groups_uniform_groups` in vllm/v1/core/kv_cache_utils.py (0.20.0 to 0.28.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.core.kv_spec import KvSpec
from app.core.packing import approximate_gcd
from app.core.units import ceil_div

Layers = tuple[tuple[int, ...], tuple[KvSpec, ...]]
"""Indices of the layers of a group and their specs."""


def tuple_groups(specs: Sequence[KvSpec], *, pads_windows: bool) -> list[Layers]:
    """Group the layers of a model with MLA and windows of several sizes."""
    latent = [index for index, spec in enumerate(specs) if spec.kind == "mla"]
    pages = sorted({specs[index].page_size_bytes for index in latent})
    buckets: dict[tuple[int, int | None], list[int]] = {}
    for index, spec in enumerate(specs):
        if spec.kind != "mla":
            buckets.setdefault((spec.block_size, spec.window), []).append(index)
    counts = [_tuples(specs[i] for i in layers) for layers in (latent, *buckets.values())]
    size = approximate_gcd(counts, counts[0])
    groups = [_group(latent, specs)]
    padded = list(specs)
    for layers in buckets.values():
        by_page: dict[int, list[int]] = {}
        for index in layers:
            page = specs[index].page_size_bytes
            if pads_windows:
                page = min(larger for larger in pages if larger >= page)
                padded[index] = replace(specs[index], padded_page_bytes=page)
            by_page.setdefault(page, []).append(index)
        tuples = list(zip(*by_page.values(), strict=True))
        count = ceil_div(len(tuples), size)
        groups.extend(
            _group([layer for own in tuples[start::count] for layer in own], padded)
            for start in range(count)
        )
    return groups


def _group(layers: Sequence[int], specs: Sequence[KvSpec]) -> Layers:
    return tuple(layers), tuple(specs[index] for index in layers)


def tuple_bytes(groups: Sequence[Sequence[KvSpec]]) -> int:
    """Bytes of a block that holds the longest group's tuples; the first group is the MLA group."""
    page_bytes = sum({spec.page_size_bytes for spec in groups[0]})
    return page_bytes * max(_tuples(specs) for specs in groups)


def slot_bytes(groups: Sequence[Sequence[KvSpec]]) -> int:
    """Bytes of a block that holds, for every page size, as many as the group with most of them."""
    most: Counter[int] = Counter()
    for specs in groups:
        most |= Counter(spec.page_size_bytes for spec in specs)
    return sum(page * count for page, count in most.items())


def _tuples(specs: Iterable[KvSpec]) -> int:
    """How often the most frequent page size occurs."""
    return max(Counter(spec.page_size_bytes for spec in specs).values(), default=0)
