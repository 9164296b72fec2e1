"""Works out the two matrices of a catalogue: all cards for a model, all models for a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

from app.catalog.catalogue import Catalogue
from app.catalog.models import CatalogueModel
from app.core.layout import Layout
from app.web.view_models.matrix_table import (
    Cell,
    Figure,
    MatrixTable,
    Row,
    cell_of,
    column_groups,
    layout_key,
    loss_lines,
    sorted_rows,
)
from app.wizard.answers import Answers
from app.wizard.layout_losses import losses_of
from app.wizard.matrix import (
    MatrixRow,
    all_cards,
    layouts_of_server,
    matrix,
    usual_layouts,
)
from app.wizard.permalink import query_pairs
from app.wizard.sizing_request import to_request

CACHED_TABLES: Final = 64
CARDS_WITHOUT_SERVER: Final = 8


@dataclass(frozen=True, slots=True)
class MatrixOptions:
    """What of a matrix is shown. `cards` 0 means servers of every size."""

    figure: Figure = "requests"
    sort: str = ""
    cards: int = 0
    sold_only: bool = False
    fitting_only: bool = False
    precision: str = ""


class MatrixTables:
    """Makes matrices for one catalogue; those asked for lately are kept."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Start with nothing worked out."""
        self._catalogue = catalogue
        self.of_model = lru_cache(maxsize=CACHED_TABLES)(self._of_model)
        self.of_server = lru_cache(maxsize=CACHED_TABLES)(self._of_server)

    def _of_model(self, answers: Answers, options: MatrixOptions) -> MatrixTable | None:
        """One model on every card whose memory is known; None while it cannot be sized."""
        catalogue = self._catalogue
        request = to_request(answers, catalogue).request
        if request is None:
            return None
        layouts = tuple(
            each for each in usual_layouts(request.model) if options.cards in (0, each.cards)
        )
        sold = catalogue.vendor.cards
        cards = [
            card
            for card in all_cards(catalogue)
            if (card.driver_memory_bytes or card.total_memory_bytes)
            and (card.slug in sold or not options.sold_only)
        ]
        cells = self._cells(answers, matrix(request, cards, layouts), options)
        rows = [
            Row(
                key=card.slug,
                name=card.name.removeprefix("NVIDIA "),
                note_bytes=card.driver_memory_bytes or card.total_memory_bytes,
                is_sold=card.slug in sold,
                cells=tuple(next(cells) for _ in layouts),
            )
            for card in cards
        ]
        return _table(layouts, rows, options)

    def _of_server(self, answers: Answers, options: MatrixOptions) -> MatrixTable | None:
        """Every model of the catalogue on one server, each with all of its usual layouts."""
        catalogue = self._catalogue
        server = catalogue.servers.get(answers.server or "")
        cards = server.cards if server else CARDS_WITHOUT_SERVER
        found: list[tuple[CatalogueModel, int | None, dict[Layout, Cell]]] = []
        for entry in catalogue.models.values():
            if options.precision and not entry.select(options.precision):
                continue
            own = answers.with_changes(model=entry.slug, checkpoint=options.precision or None)
            request = to_request(own, catalogue).request
            if request is None:
                continue
            layouts = layouts_of_server(request.model, cards)
            rows = list(matrix(request, [request.gpu], layouts))
            cells = dict(zip(layouts, self._cells(own, rows, options), strict=True))
            found.append((entry, rows[0].result.checkpoint_bytes, cells))
        columns = _union(cells for _, _, cells in found)
        lines = [
            Row(entry.slug, entry.name, weights, False, tuple(map(cells.get, columns)))  # noqa: FBT003
            for entry, weights, cells in found
        ]
        return _table(columns, lines, options)

    def _cells(
        self, answers: Answers, rows: Iterable[MatrixRow], options: MatrixOptions
    ) -> Iterator[Cell]:
        known = tuple(rows)
        servers = {(each.gpu, each.cards): each.slug for each in self._catalogue.servers.values()}
        for row, losses in zip(known, losses_of(known), strict=True):
            layout = row.layout
            own = answers.with_changes(
                gpu=row.gpu.slug,
                server=servers.get((row.gpu.slug, layout.cards)),
                tensor_parallel_size=layout.tensor_parallel_size,
                pipeline_parallel_size=layout.pipeline_parallel_size,
                data_parallel_size=layout.data_parallel_size,
                decode_context_parallel_size=layout.decode_context_parallel_size,
                enable_expert_parallel=layout.enable_expert_parallel,
                replicas=layout.replicas,
            )
            query = urlencode(query_pairs(own) or (), safe="/:,")
            yield cell_of(row.result, losses, options.figure, answers.peak_requests, query)


def _union(cells: Iterable[dict[Layout, Cell]]) -> tuple[Layout, ...]:
    """List every layout that any model has: plain ones first, then with more kinds of splitting."""
    layouts = {layout for each in cells for layout in each}
    return tuple(
        sorted(
            layouts,
            key=lambda each: (
                each.data_parallel_size,
                each.decode_context_parallel_size,
                each.pipeline_parallel_size,
                each.tensor_parallel_size,
            ),
        )
    )


def _table(layouts: tuple[Layout, ...], rows: list[Row], options: MatrixOptions) -> MatrixTable:
    if options.fitting_only:
        rows = [row for row in rows if row.best]
    ordered = sorted_rows(rows, options.sort, [layout_key(each) for each in layouts])
    return MatrixTable(column_groups(layouts), ordered, loss_lines(ordered, layouts))
