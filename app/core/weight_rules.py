"""Which storage and which split of weights vLLM refuses, and why."""

from __future__ import annotations

import math
from functools import lru_cache

from app.core.checkpoint import Quantization
from app.core.expert_padding import FP8_BLOCK_SCHEMES, SMALLEST_REFINED_BLOCK
from app.core.layout import Layout
from app.core.model_spec import TensorGroup
from app.core.parameters import NamedTensor
from app.core.reasons import Reason, Refusal
from app.core.refusals import refuse
from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.shards import VOCAB_PADDING, expert_ranks, sequence_parallel, split_of
from app.core.storage_schemes import STORAGE_SCHEMES, UNQUANTIZED
from app.core.tensor_runs import TensorRuns, tensor_runs
from app.core.units import ceil_div

_SPLIT_ROWS = frozenset({"row", "shared_row"})
_SPLIT_COLUMNS = frozenset({"column", "shared_column"})
_GROUPED = ("awq", "gptq", "w4a16")


def check_weights(request: SizingRequest, parts: frozenset[str]) -> None:
    """Raise the Refusal with which vLLM rejects how these weights are stored or split.

    `parts` as in TensorGroup.part. Source: vllm/distributed/utils.py `divide`,
    vllm/model_executor/layers/quantization/utils/fp8_utils.py `validate_fp8_block_shape`
    and `validate_fp8_block_shape_moe`, vllm/config/vllm.py `_get_quantization_config`.
    """
    quantization = request.checkpoint.quantization
    _check_method(quantization, request.release, request.gpu.compute_capability)
    tensors = tensor_runs(request.model, quantization, parts)
    reason = _split_reason(tensors, split_of(request.layout), request.release)
    if reason is not None:
        raise Refusal(reason)


@lru_cache(maxsize=16384)
def _split_reason(tensors: TensorRuns, layout: Layout, release: Release) -> Reason | None:
    try:
        for group, name in _distinct(tensors):
            _check_split(group, name, layout, release)
    except Refusal as refusal:
        return refusal.reason
    return None


@lru_cache(maxsize=1024)
def _distinct(tensors: TensorRuns) -> tuple[NamedTensor, ...]:
    """Return each kind of tensor once, rows first.

    vLLM allows merged layers more than single ones, so the text is a row's where both fail.
    """
    found: dict[tuple[object, ...], NamedTensor] = {}
    for kind in tensors.kinds:
        for group, name in kind:
            key = (group.name, group.out_features, group.in_features, group.sharding)
            found.setdefault(key, (group, name))
    return tuple(sorted(found.values(), key=lambda each: each[0].sharding not in _SPLIT_ROWS))


def _check_method(
    quantization: Quantization, release: Release, capability: tuple[int, int] | None
) -> None:
    method = quantization.method
    if method is None:
        return
    smallest = dict(release.quantization_min_capability).get(method)
    if smallest is None:
        raise refuse(release, "quantization_not_supported", "", method=method)
    if capability is None:
        return
    found = 10 * capability[0] + capability[1]
    if found < smallest:
        raise refuse(
            release,
            "quantization_not_supported",
            "quantization_capability",
            method=method,
            min_capability=smallest,
            capability=found,
        )


def _check_split(group: TensorGroup, scheme: str, layout: Layout, release: Release) -> None:
    if group.sharding == "expert_column":
        _check_expert(group, scheme, layout, release)
        return
    tp = layout.tensor_parallel_size
    if tp == 1 or (group.module == "shared" and sequence_parallel(layout)):
        return
    if group.sharding == "vocab":
        _check_divides(_padded(group.out_features), tp, release)
    elif group.sharding in _SPLIT_COLUMNS:
        _check_divides(group.out_features, tp, release)
        _check_columns(group.out_features // tp, scheme, release)
    elif group.sharding in _SPLIT_ROWS:
        _check_divides(group.in_features, tp, release)
        _check_rows(group.in_features // tp, scheme, release)


def _padded(vocab_size: int) -> int:
    return ceil_div(vocab_size, VOCAB_PADDING) * VOCAB_PADDING


def _check_divides(size: int, parts: int, release: Release) -> None:
    if size % parts:
        raise refuse(release, "refused_by_vllm", "tensor_not_divisible", size=size, parts=parts)


def _check_columns(size: int, scheme: str, release: Release) -> None:
    block = STORAGE_SCHEMES[scheme].block_rows if scheme in FP8_BLOCK_SCHEMES else 0
    if block and size % block:
        raise refuse(
            release, "quantization_not_supported", "fp8_block_columns", size=size, block=block
        )


def _check_rows(size: int, scheme: str, release: Release) -> None:
    if scheme == UNQUANTIZED:
        return
    text = "fp8_block_rows" if scheme in FP8_BLOCK_SCHEMES else "group_size_rows"
    block = STORAGE_SCHEMES[scheme].block_columns
    checked = scheme in FP8_BLOCK_SCHEMES or scheme.startswith(_GROUPED)
    if checked and block and size % block:
        raise refuse(release, "quantization_not_supported", text, size=size, block=block)


def _check_expert(group: TensorGroup, scheme: str, layout: Layout, release: Release) -> None:
    ranks = 1 if layout.enable_expert_parallel else expert_ranks(layout)
    size, hidden = group.out_features, group.in_features
    if size % ranks:
        raise refuse(
            release, "expert_split_not_supported", "tensor_not_divisible", size=size, parts=ranks
        )
    if scheme not in FP8_BLOCK_SCHEMES:
        return
    size //= ranks
    block = STORAGE_SCHEMES[scheme].block_rows
    finest = math.gcd(block, size, hidden)
    refined = release.fp8_expert_blocks_refined and finest >= SMALLEST_REFINED_BLOCK
    if size % block and not refined:
        raise refuse(
            release, "expert_split_not_supported", "fp8_expert_block", size=size, block=block
        )
