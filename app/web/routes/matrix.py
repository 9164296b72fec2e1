"""One model on every card, and every model on one server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.web.case import READABLE, Case
from app.web.errors import KEEP_ADDRESS
from app.web.forms import read_form
from app.web.kept_pages import keeping
from app.web.locale import page, place_of
from app.web.render import Renderer
from app.web.view_models.choices import offered_cards
from app.web.view_models.matrix_table import (
    FIGURES,
    SHADES,
    SHADES_OF_A_PEAK,
    MatrixTable,
    layout_key,
)
from app.web.view_models.matrix_tables import MatrixOptions, MatrixTables
from app.web.view_models.result_view import ResultViews
from app.wizard.inputs import LAYOUT_INPUTS
from app.wizard.matrix import SERVER_SIZES

router = APIRouter()

OPTION_KEYS: Final = ("show", "sort", "cards", "sold", "fitting", "precision")
# A matrix has every card and layout: what a link says of one is left out.
OF_ONE_CARD: Final = frozenset(
    {
        *LAYOUT_INPUTS, "gpu", "server", "gpu_total_memory_bytes", "other_processes_gib",
        "available_kv_cache_memory_bytes", "measured_weights_gib",
        "measured_peak_activation_gib", "measured_non_torch_gib", "measured_cudagraph_gib",
    }
)  # fmt: skip
EXAMPLE: Final = (
    ("model", "llama-3.3-70b"),
    ("checkpoint", "nvidia/Llama-3.3-70B-Instruct-FP8"),
    ("max_model_len", "8192"),
)
EXAMPLE_CONTEXT: Final = (("max_model_len", "8192"),)
SHOWN_FIELDS: Final = frozenset(
    {"model", "checkpoint", "kv_cache_dtype", "max_model_len", "peak_requests"}
)
PRECISIONS: Final = ("bf16", "fp8", "nvfp4", "mxfp4", "int4")
SORT_KEY: Final = re.compile(r"[a-z0-9]{1,32}")
UNPROCESSABLE: Final = 422


async def of_model(request: Request) -> Response:
    """Show one model on every card in every usual layout."""
    asked = _asked(request, OF_ONE_CARD) or EXAMPLE
    case = _case(request, (*asked, ("gpu", _catalogue_card(request))))
    options = _options(request.query_params)
    table = None
    if not case.form.problems:
        tables: MatrixTables = request.app.state.matrix_tables
        table = await run_in_threadpool(tables.of_model, case.answers, options)
    views: ResultViews = request.app.state.result_views
    prepared = case.form.prepared
    release = prepared.request.release if prepared.request else None
    return _page(
        case, "matrix/cards.html", options, table,
        choices=views.choices.bench(case.answers, release),
        carried_pairs=case.form.pairs(without=SHOWN_FIELDS | {"gpu"}),
    )  # fmt: skip


async def of_server(request: Request) -> Response:
    """Show every model of the catalogue on one server."""
    asked = dict(_asked(request, frozenset({"model", "checkpoint", "gpu", *LAYOUT_INPUTS})))
    catalogue = request.app.state.catalogue
    server = catalogue.servers.get(asked.get("server", "").lower())
    if server is None:
        server = catalogue.servers[catalogue.vendor.servers[-1]]
    pairs = (*{**dict(EXAMPLE_CONTEXT), **asked, "server": server.slug}.items(), EXAMPLE[0])
    case = _case(request, pairs)
    options = _options(request.query_params)
    table = None
    if not case.form.problems:
        tables: MatrixTables = request.app.state.matrix_tables
        table = await run_in_threadpool(tables.of_server, case.answers, options)
    return _page(
        case, "matrix/models.html", options, table,
        server=server,
        offered=offered_cards(catalogue),
        carried_pairs=case.form.pairs(without=SHOWN_FIELDS | {"gpu", "server"}),
    )  # fmt: skip


def _page(
    case: Case, template: str, options: MatrixOptions, table: MatrixTable | None, **more: object
) -> Response:
    renderer: Renderer = case.request.app.state.renderer
    wrong = bool(case.form.problems)
    frame = dict(case.frame())

    def sorted_by(key: str) -> str:
        given = {
            k: v for k, v in case.request.query_params.items() if k != "sort" and v.isprintable()
        }
        return f"?{urlencode({**given, 'sort': key}, safe=READABLE)}"

    return renderer.page(
        case.request,
        template,
        status=UNPROCESSABLE if wrong else 200,
        headers=KEEP_ADDRESS if wrong else None,
        **case.context(
            table=table,
            options=options,
            figures=FIGURES,
            sizes=SERVER_SIZES,
            shades=SHADES if case.answers.peak_requests is None else SHADES_OF_A_PEAK,
            precisions=PRECISIONS,
            layout_key=layout_key,
            sorted_by=sorted_by,
            bench=case.path("workbench").partition("?")[0],
            frame_query="".join(f"&{k}={v}" for k, v in frame.items()),
            section="matrix",
            **more,
        ),
    )


def _catalogue_card(request: Request) -> str:
    card: str = request.app.state.catalogue.vendor.cards[0]
    return card


def _asked(request: Request, without: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, text)
        for name, text in request.query_params.multi_items()
        if name not in without and name not in OPTION_KEYS and text.strip()
    )


def _case(request: Request, pairs: tuple[tuple[str, str], ...]) -> Case:
    place = place_of(request)
    return Case(request, place, read_form(pairs, place.language, request.app.state.catalogue))


def _options(given: Mapping[str, str]) -> MatrixOptions:
    """Read what is shown; a value nobody offers counts as none."""
    figure = given.get("show", "")
    cards = given.get("cards", "")
    precision, sort = given.get("precision", ""), given.get("sort", "")
    return MatrixOptions(
        figure=next((each for each in FIGURES if each == figure), "requests"),
        sort=sort if SORT_KEY.fullmatch(sort) else "",
        cards=int(cards) if cards in {str(size) for size in SERVER_SIZES} else 0,
        sold_only=given.get("sold") == "true",
        fitting_only=given.get("fitting") == "true",
        precision=precision if precision in PRECISIONS else "",
    )


page(router, "matrix", de="/matrix", en="/matrix")(keeping(of_model))
page(router, "server", de="/matrix/server", en="/matrix/server")(keeping(of_server))
