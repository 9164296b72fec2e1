"""Groups the layers of a model once for everything that decides about them.

Source: vllm/v1/core/kv_cache_utils.py (0.33: kv_cache_planning.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

from app.core.attention_layer import BLACKWELL
from app.core.groups import (
    LOCAL_KINDS,
    Group,
    GroupingRules,
    PageSizeError,
    PromotionError,
    form_groups,
)
from app.core.kv_dtypes import DS_MLA_BYTES
from app.core.kv_spec import KvSpec, RequestLength
from app.core.layer_cache import CacheContext
from app.core.layer_plan import LayerPlan, plan_layers
from app.core.model_spec import ModelSpec
from app.core.packed_layer import kernel_pages_bytes
from app.core.packed_tuples import slot_bytes, tuple_bytes
from app.core.refusals import refuse
from app.core.units import ceil_div


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of a model in one context, before any length is known.

    `bytes_per_block_by_stage` are bytes on one rank of each pipeline stage (0: no cache there),
    `checked_bytes_by_stage` what the start check counts for a block.
    `kinds` are the distinct specs with the number of groups each stands for; `layer_bytes` the
    page bytes of all layers of a stage by spec, as they are before they are grouped.
    `counted_pages` are the bytes by which the release weighs a block of each group where it prints
    concurrency; empty where all count alike.
    """

    groups: tuple[Group, ...]
    bytes_per_block_by_stage: tuple[int, ...]
    checked_bytes_by_stage: tuple[int, ...]
    kinds: tuple[tuple[KvSpec, int], ...]
    layer_bytes: tuple[tuple[tuple[KvSpec, int], ...], ...]
    backends: tuple[str, ...]
    counted_pages: tuple[int, ...] = ()

    def blocks_per_request(self, length: RequestLength) -> int:
        """Blocks that one request of that length takes at most, over all groups."""
        return sum(count * spec.blocks_per_request(length) for spec, count in self.kinds)


@lru_cache(maxsize=16384)
def group_layers(model: ModelSpec, context: CacheContext) -> Grouping:
    """Plan and group the layers of a model; known answers are kept.

    Raises Refusal; one may name the card, so it is worked out anew for each.
    """
    plan = plan_layers(model, context)
    groups = _groups(plan, context)
    stages = range(context.pipeline_parallel_size)
    packed = plan.packs_mixed_pages and len(groups) > 1
    planner = context.release.packed_planner if packed else ""
    allocated, counted = _BLOCK_BYTES.get(planner, (_widest_bytes, _widest_bytes))
    stride = _stride_bytes(plan, context)
    by_stage = [_on_stage(groups, plan, stage) for stage in stages]
    return Grouping(
        groups=groups,
        bytes_per_block_by_stage=tuple(_rounded(allocated(own), stride) for own in by_stage),
        checked_bytes_by_stage=tuple(_rounded(counted(own), stride) for own in by_stage),
        kinds=_kinds(groups),
        layer_bytes=tuple(_layer_bytes(plan, stage) for stage in stages),
        backends=plan.backends,
        counted_pages=(
            tuple(sum(spec.page_size_bytes for spec in own) for own in by_stage[0])
            if packed and context.release.concurrency_counts_bytes
            else ()
        ),
    )


def _groups(plan: LayerPlan, context: CacheContext) -> tuple[Group, ...]:
    """Group the planned layers, or refuse in the release's words."""
    release = context.release
    manager = context.hybrid_manager and release.hybrid_manager
    if any(spec.kind == "chunked_local" for spec in plan.specs):
        manager = manager and release.hybrid_chunked_local
    rules = GroupingRules(
        tolerance=release.group_tolerance,
        deals_layers_out=release.groups_deal_layers_out,
        uniform_type_groups=release.uniform_type_groups,
        unifies_page_sizes=release.unifies_page_sizes,
        pads_attention_pages=release.pads_attention_pages,
        packs_mixed_pages=plan.packs_mixed_pages,
        packed_planner=release.packed_planner,
        hybrid_manager=manager,
    )
    if plan.packs_mixed_pages and not manager and release.error("packed_promotion"):
        raise refuse(release, "refused_by_vllm", "packed_promotion")
    dcp = context.decode_context_parallel_size
    try:
        groups = form_groups(plan.specs, rules)
    except PageSizeError as error:
        page, largest = error.args
        numbers = {"page_size_bytes": page, "largest_page_size_bytes": largest}
        raise refuse(release, "refused_by_vllm", "page_sizes", **numbers) from error
    except PromotionError as error:
        raise refuse(release, "refused_by_vllm", "promotion_failed") from error
    if dcp > 1 and any(spec.kind in LOCAL_KINDS for group in groups for spec in group.specs):
        raise refuse(release, "dcp_not_supported", "dcp_sliding_window")
    if dcp > 1 and len(groups) > 1 and release.error("dcp_hybrid"):
        raise refuse(release, "dcp_not_supported", "dcp_hybrid")
    return groups


def _stride_bytes(plan: LayerPlan, context: CacheContext) -> int:
    """Bytes of which a block is a multiple.

    Whole pages of the kernels where layers are packed; rows of latent vectors that a backend reads
    flat.

    Source: `block_stride_alignment` in vllm/model_executor/layers/attention/mla_attention.py
    (0.31.0; later releases align the pages themselves, which need no padding).
    """
    if plan.packs_mixed_pages and context.release.packs_whole_kernel_pages:
        return kernel_pages_bytes(plan.specs)
    if not set(plan.backends) & context.release.flat_cache_backends:
        return 1
    on_blackwell = context.capability is not None and context.capability[0] == BLACKWELL
    return lcm(
        *(
            spec.state_bytes
            for spec in set(plan.specs)
            if spec.kind == "mla"
            and spec.identity != ("index",)
            and (on_blackwell or spec.identity[0] not in DS_MLA_BYTES)
        )
    )


def _rounded(size: int, stride_bytes: int) -> int:
    return ceil_div(size, stride_bytes) * stride_bytes


def _on_stage(
    groups: tuple[Group, ...], plan: LayerPlan, stage: int
) -> tuple[tuple[KvSpec, ...], ...]:
    """Keep of every group the layers of one pipeline stage."""
    return tuple(
        tuple(
            spec
            for layer, spec in zip(group.layers, group.specs, strict=True)
            if plan.stages[layer] == stage
        )
        for group in groups
    )


def _widest_bytes(groups: Sequence[Sequence[KvSpec]]) -> int:
    """Bytes of a block: the pages of its widest group."""
    return max((sum(spec.page_size_bytes for spec in specs) for specs in groups), default=0)


# How many bytes a packed block takes, and how many the start check counts for it.
_BLOCK_BYTES = {
    "tuples": (tuple_bytes, tuple_bytes),
    "slots": (slot_bytes, tuple_bytes),
    "overlay": (_widest_bytes, tuple_bytes),
}


def _layer_bytes(plan: LayerPlan, stage: int) -> tuple[tuple[KvSpec, int], ...]:
    found: dict[KvSpec, int] = {}
    for spec, own_stage in zip(plan.specs, plan.stages, strict=True):
        if own_stage == stage:
            found[spec] = found.get(spec, 0) + spec.page_size_bytes
    return tuple(found.items())


def _kinds(groups: tuple[Group, ...]) -> tuple[tuple[KvSpec, int], ...]:
    found: dict[KvSpec, int] = {}
    for group in groups:
        found[group.first] = found.get(group.first, 0) + 1
    return tuple(found.items())
