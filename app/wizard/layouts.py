"""Ways to spread a model over cards, side by side, the chosen one marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.core.layout import Layout
from app.core.result import SizingResult
from app.core.sizing import size
from app.wizard.answers import Answers
from app.wizard.sizing_request import Prepared

SPLITS: Final = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One layout with its own answers (for its link) and its result."""

    layout: Layout
    answers: Answers
    result: SizingResult
    chosen: bool


def layouts_for(prepared: Prepared) -> tuple[LayoutRow, ...]:
    """Size every usual layout of the same model, checkpoint and card.

    On a server: one card, then the whole server as copies of 1, 2, 4, 8 cards. Without one: one
    card, then 2, 4 and 8 cards as copies and as one tensor-parallel group. The chosen layout is
    among them, last where it is none of these. Raises ValueError without a request.
    """
    if prepared.request is None:
        raise ValueError("layouts need a request")
    chosen = prepared.request.layout
    usual = [*_usual(None if prepared.server is None else prepared.server.cards)]
    if chosen not in usual:
        usual.append(chosen)
    return tuple(_row(prepared, layout, chosen=layout == chosen) for layout in usual)


def _usual(cards: int | None) -> Iterator[Layout]:
    yield Layout()
    if cards is None:
        for split in SPLITS:
            yield Layout(replicas=split)
            yield Layout(tensor_parallel_size=split)
        return
    if cards > 1:
        yield Layout(replicas=cards)
    for split in SPLITS:
        if cards % split == 0:
            yield Layout(tensor_parallel_size=split, replicas=cards // split)


def _row(prepared: Prepared, layout: Layout, *, chosen: bool) -> LayoutRow:
    assert prepared.request is not None  # noqa: S101 - checked by layouts_for
    answers = prepared.answers.with_changes(
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        decode_context_parallel_size=layout.decode_context_parallel_size,
        enable_expert_parallel=layout.enable_expert_parallel,
        replicas=layout.replicas,
    )
    return LayoutRow(layout, answers, size(replace(prepared.request, layout=layout)), chosen)
