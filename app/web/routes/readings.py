"""Pages that read what a running vLLM says: its start log, and its metrics."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.catalogue import Catalogue
from app.readings.metrics_findings import find_in_metrics
from app.readings.metrics_page import MetricsPageTooLongError, MetricsReading, read_metrics_page
from app.web.case import READABLE
from app.web.errors import KEEP_ADDRESS
from app.web.frame import frame_pairs
from app.web.locale import page, place_of
from app.web.measured_mix import mix_pairs
from app.web.pasted_text import read_texts
from app.web.render import Renderer
from app.web.view_models.choices import other_cards
from app.web.view_models.log_page import MAX_KEPT, LogPage, log_page
from app.wizard.permalink import query_pairs, query_string

router = APIRouter()

UNPROCESSABLE: Final = 422
MAX_SEQUENCES: Final = 1_000_000
MAX_MINUTES: Final = 1e6
# what somebody pasted is kept by no cache
PRIVATE: Final = {"Cache-Control": "no-store"}


async def ask_log(request: Request) -> Response:
    """Show the form for a start log, with the card that a sizing's link names."""
    card = request.query_params.get("gpu", "")
    return _log(request, {"gpu": card} if _catalogue(request).card(card) else {}, None)


async def read_log(request: Request) -> Response:
    """Show what a pasted or dropped log says; an empty form again (422)."""
    fields = await read_texts(request)
    return await run_in_threadpool(_read_log, request, fields)


async def ask_metrics(request: Request) -> Response:
    """Show the form for one or two metrics pages."""
    return _metrics(request, {}, None)


async def read_metrics(request: Request) -> Response:
    """Show what one or two metrics pages say; an empty form again (422)."""
    fields = await read_texts(request)
    return await run_in_threadpool(_read_metrics, request, fields)


def _read_log(request: Request, fields: dict[str, str]) -> Response:
    text = fields.get("log", "")
    found = log_page(text, fields, _catalogue(request)) if text.strip() else None
    return _log(request, fields, found, posted=True)


def _log(
    request: Request, fields: dict[str, str], found: LogPage | None, *, posted: bool = False
) -> Response:
    catalogue = _catalogue(request)
    pairs: tuple[tuple[str, str], ...] = ()
    if found is not None and found.read is not None and found.read.answers is not None:
        answers = found.read.answers
        if query_string(answers, catalogue.data_version) is not None:
            pairs = query_pairs(answers) or ()
    return _page(
        request,
        "readings/log.html",
        posted=posted,
        wrong=posted and found is None,
        page=found,
        fields=fields,
        link=dict(pairs),
        catalogue=catalogue,
        cards=[*(catalogue.gpus[slug] for slug in catalogue.vendor.cards), *other_cards(catalogue)],
        models=sorted(catalogue.models.values(), key=lambda each: each.name.casefold()),
        max_kept=MAX_KEPT,
    )


def _read_metrics(request: Request, fields: dict[str, str]) -> Response:
    first, second = fields.get("metrics", ""), fields.get("metrics_later", "")
    text = f"{first}\n---\n{second}" if second.strip() else first
    if not text.strip():
        return _metrics(request, fields, None, posted=True)
    minutes = _number(fields.get("minutes", ""), MAX_MINUTES)
    places = _number(fields.get("max_num_seqs", ""), MAX_SEQUENCES)
    try:
        reading = read_metrics_page(
            text,
            max_num_seqs=int(places) if places else None,
            seconds_between=minutes * 60 if minutes else None,
        )
    except MetricsPageTooLongError:
        raise HTTPException(413) from None
    return _metrics(request, fields, reading, posted=True)


def _metrics(
    request: Request,
    fields: dict[str, str],
    reading: MetricsReading | None,
    *,
    posted: bool = False,
) -> Response:
    return _page(
        request,
        "readings/metrics.html",
        posted=posted,
        wrong=posted and reading is None,
        reading=reading,
        mix_href=None if reading is None else _mix_href(request, reading),
        findings=() if reading is None else find_in_metrics(reading),
        fields=fields,
    )


def _mix_href(request: Request, reading: MetricsReading) -> str | None:
    """Return where a server is found for the lengths that were read; None without any."""
    if reading.lengths is None:
        return None
    renderer: Renderer = request.app.state.renderer
    place = place_of(request)
    pairs = [*mix_pairs(reading, _catalogue(request)), *frame_pairs(request, place).items()]
    return f"{renderer.path_to(place, 'need')}?{urlencode(pairs, safe=READABLE)}"


def _page(
    request: Request,
    template: str,
    *,
    posted: bool,
    wrong: bool,
    **context: Any,  # noqa: ANN401 - what templates show
) -> Response:
    renderer: Renderer = request.app.state.renderer
    headers = {**PRIVATE, **(KEEP_ADDRESS if wrong else {})} if posted else None
    return renderer.page(
        request, template, status=UNPROCESSABLE if wrong else 200, headers=headers,
        wrong=wrong, **context,
    )  # fmt: skip


def _number(text: str, most: float) -> float | None:
    """Read a count or minutes as people write them; None for what is none."""
    plain = text.strip().replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if 0 < value <= most else None


def _catalogue(request: Request) -> Catalogue:
    catalogue: Catalogue = request.app.state.catalogue
    return catalogue


page(router, "log", de="/log", en="/log")(ask_log)
page(router, "log_read", de="/log", en="/log", methods=("POST",))(read_log)
page(router, "metrics", de="/metriken", en="/metrics")(ask_metrics)
page(router, "metrics_read", de="/metriken", en="/metrics", methods=("POST",))(read_metrics)
