"""Weights: bytes of a checkpoint in its files, and on each rank once vLLM has loaded them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from app.core.allocator import allocated_bytes
from app.core.checkpoint import Checkpoint, Quantization
from app.core.engine import ResolvedEngineArgs
from app.core.layout import Layout
from app.core.lora_buffers import lora_bytes_per_stage
from app.core.model_spec import ModelSpec, TensorGroup
from app.core.parameters import (
    Card,
    SchemeBook,
    merged_parameters,
    rank_parameters,
    stored_scheme,
)
from app.core.pipeline_stages import stages_by_layer
from app.core.request import SizingRequest
from app.core.units import GIB
from app.core.weight_rules import check_weights


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
    stages = _loaded_bytes(
        request.model,
        request.checkpoint.quantization,
        request.layout,
        Card(request.gpu.compute_capability, request.release, resolved.dtype),
        parts,
    )
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
        Card(request.gpu.compute_capability, request.release, resolved.dtype),
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


@lru_cache(maxsize=16384)
def _loaded_bytes(
    model: ModelSpec,
    quantization: Quantization,
    layout: Layout,
    card: Card,
    parts: frozenset[str],
) -> tuple[int, ...]:
    """Sum the tensors as the allocator rounds them; layers stored alike are counted once."""
    sums = _StageSums(model, layout)
    book = SchemeBook(quantization)
    split = card.release.weight_blocks_split
    known: dict[tuple[int, tuple[str, ...]], list[tuple[str, int]]] = {}
    for run in _runs(model, parts):
        key = (run.kind, tuple(book.name(group) for group in run.groups))
        if key not in known:
            parameters = merged_parameters(run.groups, book, layout, card, model.hidden_act)
            known[key] = [
                (each.module, sum(allocated_bytes(n, split=split) for n in each.kept_tensors))
                for each in parameters
            ]
        for module, size in known[key]:
            sums.add(run.layer, module, size)
    return tuple(sums.totals)


@dataclass(frozen=True, slots=True)
class _Run:
    """Tensors of one layer that follow each other; runs of one `kind` differ only in the layer."""

    layer: int
    kind: int
    groups: tuple[TensorGroup, ...]


@lru_cache(maxsize=1024)
def _runs(model: ModelSpec, parts: frozenset[str]) -> tuple[_Run, ...]:
    kinds: dict[tuple[TensorGroup, ...], int] = {}
    runs = []
    loaded = (group for group in model.tensors if group.part in parts)
    for layer, members in groupby(loaded, key=attrgetter("layer")):
        groups = tuple(members)
        anywhere = tuple(replace(group, layer=0) for group in groups)
        runs.append(_Run(layer, kinds.setdefault(anywhere, len(kinds)), groups))
    return tuple(runs)


@lru_cache(maxsize=1024)
def _created_bytes(
    model: ModelSpec,
    quantization: Quantization,
    layout: Layout,
    card: Card,
    parts: frozenset[str],
) -> tuple[int, ...]:
    sums = _StageSums(model, layout)
    for parameter in rank_parameters(model, quantization, layout, card, parts):
        sums.add(parameter.layer, parameter.module, parameter.created_bytes)
    return tuple(sums.totals)


class _StageSums:
    """Bytes of each pipeline stage; a tied embedding counts on the first and on the last."""

    def __init__(self, model: ModelSpec, layout: Layout) -> None:
        stages = layout.pipeline_parallel_size
        self.totals = [0] * stages
        self._stages_of = stages_by_layer(model.num_hidden_layers, stages)
        self._tied = model.tie_word_embeddings

    def add(self, layer: int, module: str, size_bytes: int) -> None:
        stages = self._stages_of[layer]
        if self._tied and module == "embed":
            stages = tuple({*stages, len(self.totals) - 1})
        for stage in stages:
            self.totals[stage] += size_bytes
