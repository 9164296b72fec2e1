"""Ways to spread a model over cards, side by side, the chosen one marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.core.layout import Layout
from app.core.model_spec import ModelSpec
from app.core.result import SizingResult
from app.core.sizing import size
from app.wizard.answers import Answers
from app.wizard.matrix import WHOLE_SERVER, layouts_of_server
from app.wizard.sizing_request import Prepared

SPLITS: Final = (2, 4, 8)
NOT_FOR_THIS_MODEL: Final = frozenset({"dcp_not_supported", "expert_split_not_supported"})
SMALLER_CACHE: Final = "fp8"


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One layout with its own answers (for its link) and its result.

    The answers have another `kv_cache_dtype` than was asked for where the layout needs one.
    """

    layout: Layout
    answers: Answers
    result: SizingResult
    chosen: bool


def layouts_for(prepared: Prepared) -> tuple[LayoutRow, ...]:
    """Size every usual layout of the same model, checkpoint and card.

    On a server: one card, then the whole server as copies of 1, 2, 4, 8 cards. Without one: one
    card, then 2, 4 and 8 cards as copies and as one tensor-parallel group. After them, where the
    model profits and vLLM allows it: data-parallel attention with the experts spread, and decode
    context parallelism, with an FP8 cache where only that runs. The chosen layout is among them,
    last where it is none of these. Raises ValueError without a request.
    """
    if prepared.request is None:
        raise ValueError("layouts need a request")
    chosen, model = prepared.request.layout, prepared.request.model
    plain = [*_plain(None if prepared.server is None else prepared.server.cards)]
    cards = WHOLE_SERVER if prepared.server is None else prepared.server.cards
    special = [*_special(model, cards)]
    rows = [_row(prepared, layout, chosen=layout == chosen) for layout in plain]
    for layout in special:
        if layout == chosen:
            rows.append(_row(prepared, layout, chosen=True))
        else:
            rows += filter(_is_possible, [_in_some_cache(prepared, layout)])
    if chosen not in (*plain, *special):
        rows.append(_row(prepared, chosen, chosen=True))
    return tuple(rows)


def _plain(cards: int | None) -> Iterator[Layout]:
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


def _special(model: ModelSpec, cards: int) -> Iterator[Layout]:
    """Yield what divides attention or cache in another way than copies and groups do."""
    for layout in layouts_of_server(model, cards):
        if layout.data_parallel_size > 1 or layout.decode_context_parallel_size > 1:
            yield layout


def _is_possible(row: LayoutRow) -> bool:
    return row.result.reason is None or row.result.reason.code not in NOT_FOR_THIS_MODEL


def _in_some_cache(prepared: Prepared, layout: Layout) -> LayoutRow:
    """Size a layout; with an FP8 cache where nobody chose one and vLLM refuses its own."""
    row = _row(prepared, layout, chosen=False)
    if _is_possible(row) or prepared.answers.kv_cache_dtype != "auto":
        return row
    assert prepared.request is not None  # noqa: S101 - checked by layouts_for
    answers = prepared.answers.with_changes(kv_cache_dtype=SMALLER_CACHE)
    engine_args = replace(prepared.request.engine_args, kv_cache_dtype=SMALLER_CACHE)
    changed = replace(prepared.request, engine_args=engine_args)
    return _row(replace(prepared, answers=answers, request=changed), layout, chosen=False)


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
