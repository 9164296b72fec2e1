"""Weights: bytes of a checkpoint in its files, and on each rank once vLLM has loaded them."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from app.core.allocator import allocated_bytes
from app.core.card_kind import card_kind
from app.core.checkpoint import Checkpoint, Quantization
from app.core.engine import ResolvedEngineArgs
from app.core.layout import Layout
from app.core.lora_buffers import lora_bytes_per_stage
from app.core.model_spec import ModelSpec
from app.core.parameters import (
    Card,
    SchemeBook,
    merged_parameters,
    rank_parameters,
    stored_scheme,
)
from app.core.pipeline_stages import stages_by_layer
from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.shards import split_of
from app.core.tensor_runs import TensorRuns, tensor_runs
from app.core.units import GIB
from app.core.weight_rules import check_weights

_TOWERS = frozenset({"vision", "audio"})


def checkpoint_bytes(model: ModelSpec, checkpoint: Checkpoint) -> int:
    """Bytes of the tensors in a checkpoint's files, from shapes and storage schemes alone."""
    parts = frozenset({"model", "unused"}) | checkpoint.includes
    return _stored_bytes(model, checkpoint.quantization, parts)


def weights_bytes_per_rank(request: SizingRequest, resolved: ResolvedEngineArgs) -> tuple[int, ...]:
    """Bytes one rank of each pipeline stage holds after loading: what `Model loading took` counts.

    As the allocator counts them, LoRA buffers and what MLA keeps beside its parameters included;
    what `--cpu-offload-gb` takes off the card is out. Raises Refusal where vLLM cannot store or
    split these weights so.
    """
    parts = loaded_parts(request, resolved)
    check_weights(request, parts)
    tensors = tensor_runs(request.model, request.checkpoint.quantization, parts)
    stages = _loaded_bytes(request.model, tensors, request.layout, _card(request, resolved))
    if resolved.enable_lora:
        buffers = lora_bytes_per_stage(
            request.model,
            request.layout,
            resolved.max_loras,
            resolved.max_lora_rank,
            resolved.dtype,
        )
        stages = tuple(size + extra for size, extra in zip(stages, buffers, strict=True))
    offloaded = int(resolved.cpu_offload_gb * GIB)
    return tuple(max(0, size - offloaded) for size in stages)


def parameter_bytes_per_rank(
    request: SizingRequest, resolved: ResolvedEngineArgs
) -> tuple[int, ...]:
    """Bytes of parameters and buffers as created, before vLLM processes the loaded weights.

    The sum of the tensors' own sizes: no allocator, no LoRA, nothing offloaded.
    """
    return _created_bytes(
        request.model,
        request.checkpoint.quantization,
        request.layout,
        _card(request, resolved),
        loaded_parts(request, resolved),
    )


def loaded_parts(request: SizingRequest, resolved: ResolvedEngineArgs) -> frozenset[str]:
    """Parts of the model that this start loads (TensorGroup.part)."""
    parts = {"model", "runtime"}
    if resolved.speculative_method == "mtp":
        parts |= {"mtp"} & request.checkpoint.includes
    if request.release.mrope_positions_quadrupled:
        parts.add("mrope_positions")
    if not resolved.language_model_only:
        parts |= {"vision", "audio"} & request.checkpoint.includes
    return frozenset(parts)


@lru_cache(maxsize=1024)
def _stored_bytes(model: ModelSpec, quantization: Quantization, parts: frozenset[str]) -> int:
    book = SchemeBook(quantization)
    total = 0
    for group in model.tensors:
        if group.part in parts:
            scheme = stored_scheme(group, book.name(group), model.dtype)
            total += group.count * scheme.stored_bytes(group.out_features, group.in_features)
    return total


def _card(request: SizingRequest, resolved: ResolvedEngineArgs) -> Card:
    return Card(card_kind(request.gpu.compute_capability), request.release, resolved.dtype)


@lru_cache(maxsize=16384)
def _loaded_bytes(
    model: ModelSpec, tensors: TensorRuns, layout: Layout, card: Card
) -> tuple[int, ...]:
    """Sum the tensors as the allocator rounds them."""
    sums = _StageSums(model, layout, card.release)
    sizes = _bytes_of_kinds(tensors, split_of(layout), card, model.hidden_act)
    for layer, kind in tensors.runs:
        for module, size in sizes[kind]:
            sums.add(layer, module, size)
    return tuple(sums.totals)


@lru_cache(maxsize=16384)
def _bytes_of_kinds(
    tensors: TensorRuns, layout: Layout, card: Card, hidden_act: str
) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Bytes that a run of each kind takes of a rank, by module class.

    `layout` has no more than what splits tensors, so that pipelines and copies share an answer.
    """
    split = card.release.weight_blocks_split
    found = []
    for kind in tensors.kinds:
        sizes: Counter[str] = Counter()
        for each in merged_parameters(kind, layout, card, hidden_act):
            sizes[each.module] += sum(allocated_bytes(n, split=split) for n in each.kept_tensors)
        found.append(tuple(sizes.items()))
    return tuple(found)


@lru_cache(maxsize=1024)
def _created_bytes(
    model: ModelSpec,
    quantization: Quantization,
    layout: Layout,
    card: Card,
    parts: frozenset[str],
) -> tuple[int, ...]:
    sums = _StageSums(model, layout, card.release)
    for parameter in rank_parameters(model, quantization, layout, card, parts):
        sums.add(parameter.layer, parameter.module, parameter.created_bytes)
    return tuple(sums.totals)


class _StageSums:
    """Bytes of each pipeline stage; a tied embedding counts on the first and on the last.

    Towers count on every stage, or on the first alone. Source: vllm/model_executor/models/
    interfaces.py `_mark_tower_model` (0.33.0).
    """

    def __init__(self, model: ModelSpec, layout: Layout, release: Release) -> None:
        stages = layout.pipeline_parallel_size
        self.totals = [0] * stages
        self._stages_of = stages_by_layer(model.num_hidden_layers, stages)
        self._tied = model.tie_word_embeddings
        self._on_first = _TOWERS if release.towers_on_first_stage else frozenset()

    def add(self, layer: int, module: str, size_bytes: int) -> None:
        stages = self._stages_of[layer]
        if module in self._on_first:
            stages = (0,)
        if self._tied and module == "embed":
            stages = tuple({*stages, len(self.totals) - 1})
        for stage in stages:
            self.totals[stage] += size_bytes
