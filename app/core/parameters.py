"""The parameters one rank holds: shares of the model's tensors, as vLLM stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.core.card_kind import CardKind
from app.core.checkpoint import Quantization
from app.core.expert_padding import (
    FP8_BLOCK_SCHEMES,
    expert_padding,
    least_expert,
    pad_expert,
    refined_scheme,
)
from app.core.layout import Layout
from app.core.merged_layers import merged_name
from app.core.model_spec import ModelSpec, TensorGroup
from app.core.releases import Release
from app.core.shards import shard
from app.core.storage_schemes import STORAGE_SCHEMES, UNQUANTIZED, StorageScheme, unquantized

# MLA keeps its up-projection a second time in 16 bit, absorbed into q and o, when the weight
# itself is quantised: vllm/model_executor/layers/attention/mla_attention.py
# `process_weights_after_loading` (0.32.0).
_ABSORBED = ".kv_b_proj"
# vllm/model_executor/layers/fused_moe/router/gate_linear.py (0.17.1 to 0.33.0)
_WITH_ROUTER_KERNELS = frozenset({"hopper", "sm100"})
_ABSORBED_ELEMENT_BYTES = 2
# A tensor and the name of the scheme it is stored in.
NamedTensor = tuple[TensorGroup, str]


@dataclass(frozen=True, slots=True)
class Card:
    """What decides how tensors are held: the card, vLLM's release, the dtype the model runs in."""

    kind: CardKind
    release: Release
    dtype: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor on a rank (`layer` as in TensorGroup): elements, and scales in a tensor beside.

    `kept_bytes` is what stays of the scales once vLLM has processed the loaded weights,
    `absorbed_bytes` what MLA then keeps of the elements once more.
    """

    layer: int
    module: str
    weight_bytes: int
    extra_bytes: int = 0
    kept_bytes: int = 0
    absorbed_bytes: int = 0

    @property
    def created_bytes(self) -> int:
        """Bytes when the model is built."""
        return self.weight_bytes + self.extra_bytes

    @property
    def kept_tensors(self) -> tuple[int, int, int]:
        """Bytes of each tensor that is there once the model is loaded."""
        return self.weight_bytes, self.kept_bytes, self.absorbed_bytes


class SchemeBook:
    """Finds the storage scheme of a tensor group by layer and name, name, part, class."""

    def __init__(self, quantization: Quantization) -> None:
        """Index the checkpoint's tables."""
        self._by_name = dict(quantization.by_name)
        self._schemes = dict(quantization.schemes)

    def name(self, group: TensorGroup) -> str:
        """Scheme's name, `none` for the model's own dtype."""
        if not group.quantizable:
            return UNQUANTIZED
        if self._by_name:
            layered = self._by_name.get(f"{group.layer}.{group.name}")
            named = layered or self._by_name.get(group.name)
            if named:
                return named
        if group.part != "model" and group.part in self._schemes:
            return self._schemes[group.part]
        return self._schemes.get(group.module, UNQUANTIZED)


def stored_scheme(group: TensorGroup, name: str, dtype: str) -> StorageScheme:
    """Scheme of a tensor in the files."""
    if name == UNQUANTIZED:
        return unquantized(group.dtype or dtype)
    return STORAGE_SCHEMES[name]


def rank_parameters(
    model: ModelSpec,
    quantization: Quantization,
    layout: Layout,
    card: Card,
    parts: frozenset[str],
) -> Iterator[Parameter]:
    """Yield the parameters of one rank, layers merged as vLLM merges them, in the model's order."""
    book = SchemeBook(quantization)
    tensors = ((group, book.name(group)) for group in model.tensors if group.part in parts)
    yield from merged_parameters(tensors, layout, card, model.hidden_act)


def merged_parameters(
    tensors: Iterable[NamedTensor], layout: Layout, card: Card, hidden_act: str
) -> Iterator[Parameter]:
    """Yield the parameters that some tensors of a model make on one rank, merged as above."""
    open_key: tuple[int, str] | None = None
    held: Parameter | None = None
    for group, name in tensors:
        parameter = _parameter(group, name, layout, card, hidden_act)
        if group.in_features == 1:
            yield parameter
            continue
        key = (group.layer, merged_name(group.name))
        if held is not None and key == open_key:
            held = _joined(held, parameter)
            continue
        if held is not None:
            yield held
        held, open_key = parameter, key
    if held is not None:
        yield held


def _joined(first: Parameter, second: Parameter) -> Parameter:
    return Parameter(
        first.layer,
        first.module,
        first.weight_bytes + second.weight_bytes,
        first.extra_bytes + second.extra_bytes,
        first.kept_bytes + second.kept_bytes,
        first.absorbed_bytes + second.absorbed_bytes,
    )


def _parameter(
    group: TensorGroup, name: str, layout: Layout, card: Card, hidden_act: str
) -> Parameter:
    share = shard(least_expert(group, layout, card.release), layout)
    scheme = _loaded_scheme(group, name, card)
    if group.module == "expert":
        padding = expert_padding(name, card.kind, hidden_act, card.release)
        share = pad_expert(share, group.sharding, padding)
        if name in FP8_BLOCK_SCHEMES:
            scheme = refined_scheme(scheme, share, group.sharding)
    out, into, count = share.out_features, share.in_features, share.count
    absorbed = group.name.endswith(_ABSORBED) and name != UNQUANTIZED
    return Parameter(
        group.layer,
        group.module,
        count * scheme.weight_bytes(out, into),
        count * scheme.loaded_extra_bytes(out, into),
        count * kept_scheme(scheme, name, card.kind).kept_extra_bytes(out, into),
        out * into * _ABSORBED_ELEMENT_BYTES if absorbed else 0,
    )


def kept_scheme(scheme: StorageScheme, name: str, card: CardKind) -> StorageScheme:
    """Scheme once loaded: below SM 8.9 Marlin widens block scales to one per column of a block.

    Source: vllm/model_executor/layers/quantization/utils/marlin_utils_fp8.py
    `prepare_fp8_layer_for_marlin` (0.32.0).
    """
    if name in FP8_BLOCK_SCHEMES and card == "before_ada":
        return replace(scheme, block_rows=1, loaded_scale_bytes=2)
    return scheme


def _loaded_scheme(group: TensorGroup, name: str, card: Card) -> StorageScheme:
    fallback = None if card.kind in _WITH_ROUTER_KERNELS else group.fallback_dtype
    dtype = fallback or group.loaded_dtype
    return unquantized(dtype) if dtype else stored_scheme(group, name, card.dtype)
