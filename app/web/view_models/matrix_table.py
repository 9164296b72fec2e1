"""The matrix as a page shows it: rows of cards or models, columns of layouts, one figure a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.core.layout import Layout
from app.core.reasons import Reason
from app.core.result import SizingResult
from app.wizard.layout_losses import Loss, LossCode

Figure = Literal["requests", "planned", "tokens", "concurrency", "per_card"]
FIGURES: Final[tuple[Figure, ...]] = ("requests", "planned", "tokens", "concurrency", "per_card")
# Figures of vLLM's log; all others stand on the planning rule as well.
PRINTED: Final[frozenset[Figure]] = frozenset({"tokens", "concurrency"})
# Releases so old that no start of them is known well: what they print is not estimated.
NO_ESTIMATE: Final = "no_estimate"
SHADES: Final = (1, 4, 16, 64)
SHADES_OF_A_PEAK: Final = (1, 1.5, 2, 4)


@dataclass(frozen=True, slots=True)
class Cell:
    """One card or model in one layout.

    `value` is the chosen figure over all cards, None where there is none; `shade` is 0 where
    fewer requests fit than are needed, else 1 to 4 by how many times they fit. `query` is that of
    the sizing's own page.
    """

    value: float | None
    shade: int
    reason: Reason | None
    losses: tuple[Loss, ...]
    query: str

    @property
    def why_empty(self) -> str:
        """Code of what keeps vLLM from starting, else that nobody can estimate a start."""
        return NO_ESTIMATE if self.reason is None else self.reason.code


@dataclass(frozen=True, slots=True)
class Row:
    """One line: `name` and `note_bytes` (memory of a card, weights of a model)."""

    key: str
    name: str
    note_bytes: int | None
    is_sold: bool
    cells: tuple[Cell | None, ...]

    @property
    def best(self) -> float:
        """Largest figure of the line, 0 where nothing fits."""
        return max((cell.value or 0.0 for cell in self.cells if cell), default=0.0)


@dataclass(frozen=True, slots=True)
class LossLine:
    """Why a layout loses: the cause, against which layout, and from how much to how much."""

    layout: Layout
    code: LossCode
    count: int
    better: Layout
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class MatrixTable:
    """Columns are (number of cards, layouts) groups in the order of the cells."""

    groups: tuple[tuple[int, tuple[Layout, ...]], ...]
    rows: tuple[Row, ...]
    losses: tuple[LossLine, ...]

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """All columns."""
        return tuple(layout for _, layouts in self.groups for layout in layouts)


def cell_of(
    result: SizingResult, losses: tuple[Loss, ...], figure: Figure, peak: int | None, query: str
) -> Cell:
    """Show one sizing as a cell."""
    times = result.verdict_requests / (peak or 1)
    steps = SHADES if peak is None else SHADES_OF_A_PEAK
    return Cell(
        value=figure_of(result, figure),
        shade=sum(times >= step for step in steps) if result.ok else 0,
        reason=result.reason,
        losses=losses,
        query=query,
    )


def figure_of(result: SizingResult, figure: Figure) -> float | None:
    """Return the chosen figure over all cards of the layout; None where there is none."""
    layout, cache = result.request.layout, result.cache
    if not result.ok or (cache is None and figure in PRINTED):
        return None
    figures: dict[Figure, Callable[[], float]] = {
        "requests": lambda: result.verdict_requests,
        "planned": lambda: result.planning.requests if result.planning else 0,
        "tokens": lambda: cache.kv_cache_size_tokens * layout.engines if cache else 0,
        "concurrency": lambda: cache.max_concurrency * layout.engines if cache else 0,
        "per_card": lambda: result.verdict_requests / layout.cards,
    }
    return figures[figure]()


def column_groups(layouts: Sequence[Layout]) -> tuple[tuple[int, tuple[Layout, ...]], ...]:
    """Gather columns by the number of their cards; they come in that order."""
    counts = sorted({layout.cards for layout in layouts})
    return tuple(
        (count, tuple(each for each in layouts if each.cards == count)) for count in counts
    )


def sorted_rows(rows: Iterable[Row], sort: str, keys: Sequence[str]) -> tuple[Row, ...]:
    """Sort lines: by `name`, by `memory`, by the `best` figure, or by the column of that key."""
    known = tuple(rows)
    if sort == "name":
        return tuple(sorted(known, key=lambda row: row.name.casefold()))
    if sort == "memory":
        return tuple(sorted(known, key=lambda row: -(row.note_bytes or 0)))
    if sort == "best":
        return tuple(sorted(known, key=lambda row: -row.best))
    if sort in keys:
        column = keys.index(sort)

        def figure(row: Row) -> float:
            cell = row.cells[column]
            return 1.0 if cell is None or cell.value is None else -cell.value

        return tuple(sorted(known, key=figure))
    return known


def layout_key(layout: Layout) -> str:
    """Name a layout in an address: `8xtp1`, `1xtp4pp2`, `1xtp1dp8ep`."""
    parts = [f"{layout.replicas}xtp{layout.tensor_parallel_size}"]
    for name, size in (
        ("pp", layout.pipeline_parallel_size),
        ("dp", layout.data_parallel_size),
        ("dcp", layout.decode_context_parallel_size),
    ):
        if size > 1:
            parts.append(f"{name}{size}")
    if layout.enable_expert_parallel:
        parts.append("ep")
    return "".join(parts)


def loss_lines(rows: Iterable[Row], layouts: Sequence[Layout]) -> tuple[LossLine, ...]:
    """Gather the losses of all shown lines: one for each layout, cause and better layout."""
    found: dict[tuple[Layout, LossCode, int, Layout], list[float]] = {}
    for row in rows:
        for layout, cell in zip(layouts, row.cells, strict=True):
            for loss in cell.losses if cell else ():
                found.setdefault((layout, loss.code, loss.count, loss.better), []).append(
                    loss.times
                )
    return tuple(LossLine(*key, min(times), max(times)) for key, times in found.items())
