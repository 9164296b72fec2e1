"""Why a layout holds less than another one on the same cards: the cause, and how much less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from app.core.layout import Layout
from app.core.result import SizingResult
from app.wizard.matrix import MatrixRow, is_latent, repeats_of_cache

LossCode = Literal["latent_copied", "heads_replicated", "weights_repeated", "stages_uneven"]
WORTH_NAMING: Final = 1.05


@dataclass(frozen=True, slots=True)
class Loss:
    """`better` holds `times` the requests of this layout on as many cards of the same kind.

    `count` is what the cause counts: cards that store the same cache, or copies of the weights.
    """

    code: LossCode
    count: int
    better: Layout
    times: float


def losses_of(rows: Iterable[MatrixRow]) -> Iterator[tuple[Loss, ...]]:
    """Give every cell its losses; none for the best on its cards or where no cause can be named.

    Compared with the best layout on the same cards; a latent cache that is copied also with every
    layout that does not copy it.
    """
    known = tuple(rows)
    rivals: dict[tuple[str, int], list[MatrixRow]] = {}
    for row in known:
        rivals.setdefault((row.gpu.slug, row.layout.cards), []).append(row)
    for group in rivals.values():
        group.sort(key=lambda each: -held_requests(each.result))
    for row in known:
        yield tuple(_losses(row, rivals[row.gpu.slug, row.layout.cards]))


def held_requests(result: SizingResult) -> float:
    """Requests of the declared length over all copies, as the log is most likely to print."""
    if result.cache is None:
        return 0.0
    return result.cache.max_concurrency * result.request.layout.engines


def _losses(row: MatrixRow, rivals: list[MatrixRow]) -> Iterator[Loss]:
    held, cause = held_requests(row.result), _cause(row)
    if not held or cause is None:
        return
    code, count = cause
    for place, rival in enumerate(rivals):
        times = held_requests(rival.result) / held
        if times < WORTH_NAMING:
            return
        if place == 0 or (code == "latent_copied" and _cause(rival) is None):
            yield Loss(code, count, rival.layout, times)


def _cause(row: MatrixRow) -> tuple[LossCode, int] | None:
    layout, model = row.layout, row.result.request.model
    repeats = repeats_of_cache(model, layout.tensor_parallel_size)
    repeats //= layout.decode_context_parallel_size
    if repeats > 1:
        return ("latent_copied" if is_latent(model) else "heads_replicated"), repeats
    spread = layout.enable_expert_parallel and layout.data_parallel_size > 1
    if layout.engines > 1 and not spread:
        return "weights_repeated", layout.engines
    if layout.pipeline_parallel_size > 1:
        return "stages_uneven", layout.pipeline_parallel_size
    return None
