"""The tensors of a model in runs: what repeats in many layers is described once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from app.core.checkpoint import Quantization
from app.core.model_spec import ModelSpec, TensorGroup
from app.core.parameters import NamedTensor, SchemeBook


@dataclass(frozen=True, slots=True, eq=False)
class TensorRuns:
    """Tensors of some parts of a checkpoint. Compared by identity, so that caches can key on it.

    A run are tensors of one layer that follow each other; `runs` gives for each, in the model's
    order, its layer and its place in `kinds`. Runs of one kind differ only in the layer; `kinds`
    holds the first of each.
    """

    kinds: tuple[tuple[NamedTensor, ...], ...]
    runs: tuple[tuple[int, int], ...]


@lru_cache(maxsize=1024)
def tensor_runs(model: ModelSpec, quantization: Quantization, parts: frozenset[str]) -> TensorRuns:
    """Gather the tensors of those parts (TensorGroup.part) into runs; known ones are kept."""
    book = SchemeBook(quantization)
    places: dict[tuple[NamedTensor, ...], int] = {}
    kinds: list[tuple[NamedTensor, ...]] = []
    runs = []
    for layer, groups in groupby(_of_parts(model, parts), key=attrgetter("layer")):
        run = tuple((group, book.name(group)) for group in groups)
        anywhere = tuple((replace(group, layer=0), name) for group, name in run)
        place = places.setdefault(anywhere, len(kinds))
        if place == len(kinds):
            kinds.append(run)
        runs.append((layer, place))
    return TensorRuns(tuple(kinds), tuple(runs))


def _of_parts(model: ModelSpec, parts: frozenset[str]) -> Iterable[TensorGroup]:
    return (group for group in model.tensors if group.part in parts)
