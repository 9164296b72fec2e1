"""Forms KV cache groups the way vLLM does: layers that share one block table.

Source: `get_kv_cache_groups` in vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.kv_spec import KvSpec
from app.core.packed_tuples import tuple_groups
from app.core.packing import packed_groups
from app.core.units import ceil_div

LOCAL_KINDS = frozenset({"sliding_window", "sliding_window_mla", "chunked_local"})


class PageSizeError(ValueError):
    """Pages of different layers that vLLM cannot bring to one size."""


class PromotionError(ValueError):
    """Layers that do not become one kind without the hybrid KV cache manager."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one block table: their indices and their specs, which may differ in page size.

    `specs[i]` belongs to the layer `layers[i]`.
    """

    layers: tuple[int, ...]
    specs: tuple[KvSpec, ...]

    @property
    def first(self) -> KvSpec:
        """Spec that stands for the group; all of them take the same number of blocks."""
        return self.specs[0]


@dataclass(frozen=True, slots=True)
class GroupingRules:
    """What a release and the layout of the cache in memory change about grouping.

    tolerance             the largest bucket sets the group size when it is below this times the
                          smallest
    deals_layers_out      every second, third ... layer goes to a group, else one after the other
    uniform_type_groups   layers of one type share a group whatever their heads
    unifies_page_sizes    smaller pages grow by a larger block, else mixed pages are refused
    pads_attention_pages  pages that do not divide the largest are padded, else refused
    packs_mixed_pages     blocks hold the pages of all layers, so mixed pages pack (DeepSeek-V4)
    packed_planner        how they pack; see Release
    hybrid_manager        windows have groups of their own
    """

    tolerance: float
    deals_layers_out: bool
    uniform_type_groups: bool
    unifies_page_sizes: bool
    pads_attention_pages: bool
    packs_mixed_pages: bool
    packed_planner: str
    hybrid_manager: bool


def form_groups(specs: Sequence[KvSpec], rules: GroupingRules) -> tuple[Group, ...]:
    """Group the layers of a whole model. Raises PageSizeError and PromotionError."""
    if not specs:
        return ()
    layers = list(specs)
    if not rules.hybrid_manager and not is_uniform_type(layers):
        layers = _without_windows(layers)
        if not is_uniform_type(layers):
            raise PromotionError
    pages = {spec.page_size_bytes for spec in layers}
    everything = tuple(range(len(layers)))
    if is_uniform_type(layers) and (rules.uniform_type_groups or len(pages) == 1):
        return (Group(everything, tuple(layers)),)
    if rules.packs_mixed_pages and len(pages) > 1:
        return _packed(layers, rules)
    if len(pages) > 1 and not rules.unifies_page_sizes:
        raise PageSizeError(min(pages), max(pages))
    return _uniform_page_groups(_unify_page_sizes(layers, rules), rules)


def _packed(layers: list[KvSpec], rules: GroupingRules) -> tuple[Group, ...]:
    if rules.packed_planner == "types":
        return tuple(
            Group(tuple(indices), tuple(layers[i] for i in indices))
            for indices in packed_groups(layers)
        )
    pads = rules.packed_planner != "overlay"
    return tuple(Group(*group) for group in tuple_groups(layers, pads_windows=pads))


def is_uniform_type(specs: Sequence[KvSpec]) -> bool:
    """True where all layers always need the same number of token slots."""
    first = specs[0]
    if first.kind == "mamba":
        return all(
            spec.kind == "mamba"
            and spec.state_blocks == first.state_blocks
            and spec.state_every_block == first.state_every_block
            and spec.block_size == first.block_size
            and spec.page_size_bytes == first.page_size_bytes
            for spec in specs
        )
    if first.is_full:
        return all(spec.is_full and spec.block_size == first.block_size for spec in specs)
    return all(
        spec.kind == first.kind
        and spec.window == first.window
        and spec.block_size == first.block_size
        for spec in specs
    )


def _without_windows(layers: list[KvSpec]) -> list[KvSpec]:
    """Treat windows as full attention where both occur: no hybrid KV cache manager."""
    full = [spec.block_size for spec in layers if spec.is_full]
    if not full:
        return layers
    return [
        spec.as_full_attention(full[0]) if spec.kind in LOCAL_KINDS else spec for spec in layers
    ]


def _unify_page_sizes(layers: list[KvSpec], rules: GroupingRules) -> list[KvSpec]:
    """Bring every page to the size of the largest by a larger block, else by padding."""
    kinds = tuple(dict.fromkeys(layers))
    largest = max(spec.page_size_bytes for spec in kinds)
    unified = {spec: _with_page(spec, largest, rules) for spec in kinds}
    return [unified[spec] for spec in layers]


def _with_page(spec: KvSpec, largest: int, rules: GroupingRules) -> KvSpec:
    page = spec.page_size_bytes
    if page == largest:
        return spec
    if spec.kind == "mamba":
        return replace(spec, padded_page_bytes=largest)
    if largest % page == 0:
        return replace(spec, block_size=spec.block_size * (largest // page))
    if spec.kind != "mla" and rules.pads_attention_pages:
        return replace(spec, padded_page_bytes=largest)
    raise PageSizeError(page, largest)


def _uniform_page_groups(layers: list[KvSpec], rules: GroupingRules) -> tuple[Group, ...]:
    """Split buckets of equal layers into groups of one size.

    Layers are dealt out, so that a pipeline stage gets its share of each group.
    """
    buckets: dict[KvSpec, list[int]] = {}
    for index, spec in enumerate(layers):
        # Full attention layers that differ only in a window they do not use are one kind.
        key = replace(spec, window=None) if spec.is_full and spec.window is not None else spec
        buckets.setdefault(key, []).append(index)
    sizes = [len(indices) for indices in buckets.values()]
    smallest, largest = min(sizes), max(sizes)
    group_size = largest if largest < smallest * rules.tolerance else smallest
    groups = []
    for indices in buckets.values():
        count = ceil_div(len(indices), group_size)
        for start in range(count):
            own = indices[start::count]
            if not rules.deals_layers_out:
                own = indices[start * group_size : (start + 1) * group_size]
            groups.append(Group(tuple(own), tuple(layers[i] for i in own)))
    return tuple(groups)
